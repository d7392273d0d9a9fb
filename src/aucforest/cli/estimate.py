"""``aucforest estimate``: performance without labels."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import typer
from rich.markup import escape
from rich.table import Table

from aucforest._files import write_whole
from aucforest.cli._inputs import open_table
from aucforest.cli._options import JsonOut, PlotOut, names_in
from aucforest.cli._outputs import PICTURES, check_outputs, check_suffix, console, rich_table, write_json, write_picture
from aucforest.monitoring import CBPE, CBPEResult, Chunks
from aucforest.tables.kinds import find_column


def estimate(
    reference: Annotated[
        Path,
        typer.Argument(metavar="REFERENCE", help="Labelled rows that the model was not trained on; .csv, .parquet."),
    ],
    new: Annotated[
        Path, typer.Argument(metavar="NEW", help="Rows to estimate the performance on; labels are optional.")
    ],
    score: Annotated[str, typer.Option(help="The column of scores; of more classes one a class.", metavar="A[,B,...]")],
    target: Annotated[str, typer.Option(help="The column of class labels.", metavar="COLUMN")],
    labels: Annotated[
        str | None, typer.Option(help="Classes in the order of the scores; of two, the last is positive.")
    ] = None,
    prediction: Annotated[str | None, typer.Option(help="The column of predicted labels.", metavar="COLUMN")] = None,
    features: Annotated[str | None, typer.Option(help="Columns that are watched for a shift.", metavar="A,B")] = None,
    metrics: Annotated[str, typer.Option(help="What to estimate, such as roc_auc,f1.")] = "roc_auc",
    size: Annotated[int | None, typer.Option(help="Rows of a chunk.")] = None,
    number: Annotated[int | None, typer.Option(help="Number of chunks; 10 if nothing else is said.")] = None,
    period: Annotated[str | None, typer.Option(help="Period of a chunk: h, D, W, M, Q or Y; needs --time.")] = None,
    time: Annotated[str | None, typer.Option(help="The column of timestamps.", metavar="COLUMN")] = None,
    level: Annotated[float, typer.Option(help="Level of the intervals.")] = 0.95,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without score or reference label.")
    ] = False,
    json_out: JsonOut = None,
    csv_out: Annotated[Path | None, typer.Option("--csv", help="Write the table here.", metavar="OUT")] = None,
    plot_out: PlotOut = None,
) -> None:
    """Estimate the performance of a model on unlabelled rows, chunk by chunk, with intervals and alerts.

    Example: aucforest estimate reference.csv new.csv --score probability_yes --target label --size 1000
    """
    check_suffix("--plot", plot_out, PICTURES)
    check_outputs(json_out, csv_out, plot_out, inputs=[reference, new])
    if (period is None) != (time is None) or sum(given is not None for given in (size, number, period)) > 1:
        raise typer.BadParameter("chunks are cut by --size, by --number, or by --period together with --time")
    columns = {"score": names_in(score), "target": [target], "prediction": names_in(prediction)}
    columns |= {"features": names_in(features), "time": names_in(time)}
    classes = None if labels is None else names_in(labels)
    known = _scored(reference, columns, classes)
    asked = _scored(new, columns, classes, target)
    if period is not None:
        chunks = [Chunks.by_period(rows["time"], cast(Any, period)) for rows in (known, asked)]
    else:
        chunks = 2 * [Chunks.by_number(10 if number is None else number) if size is None else Chunks.by_size(size)]
    on_nan: Literal["drop", "raise"] = "drop" if drop_missing else "raise"
    cbpe = CBPE(names_in(metrics), level=level, labels=classes, on_nan=on_nan)
    cbpe.fit(known["score"], known["target"], known["prediction"], X=known["features"], chunks=chunks[0])
    y_true, X = asked["target"], asked["features"]
    result = cbpe.estimate(asked["score"], asked["prediction"], y_true=y_true, X=X, chunks=chunks[1])
    console(json_out).print(_as_table(f"{new.name}, judged by {reference.name}", result))
    write_json(json_out, {"metrics": result.metrics, "estimates": result.records()})
    if csv_out is not None:
        write_whole(csv_out, result.to_frame().to_csv(index=False).encode())
        typer.echo(f"table: {csv_out}", err=True)
    if plot_out is not None:
        write_picture(plot_out, result.plot().figure_)


def _scored(file: Path, columns: dict[str, list[str]], classes: list[str] | None, optional: str = "") -> dict[str, Any]:
    """Read what each option names: a column, several as a matrix, None for nothing; `optional` may be missing or empty.

    Classes are texts; of whole numbers without ".0", which a column gets by a gap.
    """
    with open_table(file) as table:
        for name in {name for names in columns.values() for name in names} - {optional}:
            find_column(table, name)
        frame = table.whole().to_pandas(date_as_object=False)
    rows: dict[str, Any] = dict.fromkeys(columns)
    for option, names in columns.items():
        if not names or (names == [optional] and (optional not in frame.columns or frame[optional].isna().all())):
            continue
        values = frame[names] if option == "features" or len(names) > 1 else frame[names[0]]
        if classes is not None and option in ("target", "prediction"):
            values = values.convert_dtypes().astype("string")
        if option == "time" and getattr(values.dtype, "tz", None) is not None:
            values = values.dt.tz_localize(None)  # the calendar of the column's own zone
        rows[option] = values.to_numpy()
    return rows


def _as_table(title: str, result: CBPEResult) -> Table:
    """Return a row a chunk and metric; alerts are red."""
    caption = (
        "No estimate without labels sees a change of what the scores mean; PSI above 0.2 is a big shift of scores."
    )
    headings = ["chunk", ">rows", "metric", ">estimate", ">interval", ">realised", ">limits", ">PSI"]
    rows = []
    for row in result.estimates:
        numbers = (row.estimate,), (row.low, row.high), (row.realised,), (row.lower_limit, row.upper_limit)
        estimate, *others = map(_spell, (*numbers, (result.shifts[row.chunk].psi,)))
        alert = " alert" if row.alert else ""
        cells = [escape(row.chunk), str(row.n_rows), row.metric, f"{estimate}{alert}", *others]
        rows.append([f"[red]{cell}[/]" for cell in cells] if row.alert else cells)
    return rich_table(title, headings, rows, caption=caption)


def _spell(numbers: tuple[float, ...]) -> str:
    """Return a number or an interval as text; what is not known is left empty."""
    return "" if all(map(math.isnan, numbers)) else " to ".join(f"{number:.4g}" for number in numbers)
