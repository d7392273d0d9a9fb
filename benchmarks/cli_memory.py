"""How much memory `aucforest predict` takes for files of several sizes, beside reading and predicting all at once.

A row has 10 numbers and a column of text; the model 20 trees. Peak memory is that of a process of its own (Linux only).
"""

import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow.parquet
from _timing import in_fresh_process

from aucforest import AUCForestClassifier

ROWS = 50_000  # of the part that files repeat
SIZES = (1, 8, 40)

# Not ru_maxrss, which would begin with what the process had that started this one.
PEAK = """
import re
from pathlib import Path
print(int(re.search("VmHWM: *([0-9]+)", Path("/proc/self/status").read_text().expandtabs())[1]) / 1024)
"""
BATCHES = """
from aucforest.cli.app import app
app(["predict", {model!r}, {data!r}, "--out", {out!r}], standalone_mode=False)
"""
AT_ONCE = """
import pandas
import aucforest
model = aucforest.load({model!r}).set_params(n_jobs=-1)
frame = pandas.read_{kind}({data!r}).astype({{"kind": "category"}})
table = pandas.DataFrame(model.predict_proba(frame[model.feature_names_in_]), columns=["no", "yes"])
table.assign(prediction=model.predict(frame[model.feature_names_in_])).to_{kind}({out!r}, index=False)
"""


def part_of_file() -> pd.DataFrame:
    """Return the rows that files repeat."""
    random = np.random.default_rng(0)
    frame = pd.DataFrame(random.normal(size=(ROWS, 10)), columns=[f"x{i}" for i in range(10)])
    return frame.assign(kind=random.choice(["red", "green", "blue"], ROWS), id=[f"{row:08d}" for row in range(ROWS)])


def write(part: pd.DataFrame, times: int, path: Path) -> None:
    """Write the part so often; a Parquet file gets all in one row group, which is the hardest to read in parts."""
    if path.suffix == ".csv":
        text = part.to_csv(index=False).encode()
        header, rows = text.split(b"\n", 1)
        with path.open("wb") as file:
            file.write(header + b"\n")
            for _ in range(times):
                file.write(rows)
    else:
        table = pyarrow.Table.from_pandas(pd.concat([part] * times), preserve_index=False)
        pyarrow.parquet.write_table(table, path, row_group_size=len(table))


def main() -> None:
    part = part_of_file()
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        X = part.drop(columns="id").astype({"kind": "category"})
        AUCForestClassifier(20, n_jobs=-1, random_state=0).fit(X, part["x0"] > 1.5).save(model)
        print(f"{'file':>16}{'rows':>12}{'in batches':>22}{'all at once':>22}{'ratio':>8}")
        for kind in ("csv", "parquet"):
            for times in SIZES:
                data, out = Path(folder) / f"data.{kind}", Path(folder) / f"out.{kind}"
                write(part, times, data)
                cells, peaks = [], []
                for program in (BATCHES, AT_ONCE):
                    start = perf_counter()
                    filled = program.format(model=str(model), data=str(data), out=str(out), kind=kind)
                    peaks.append(in_fresh_process(filled + PEAK))
                    cells.append(f"{peaks[-1]:,.0f} MiB, {perf_counter() - start:5.1f} s")
                size = f"{data.stat().st_size / 2**20:,.0f} MiB {kind}"
                print(f"{size:>16}{times * ROWS:>12,}{cells[0]:>22}{cells[1]:>22}{peaks[1] / peaks[0]:>8.1f}")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
