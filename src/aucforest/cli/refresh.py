"""``aucforest refresh``: update a fitted model with new rows."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.text import Text

from aucforest.cli import _options, _outputs
from aucforest.cli._inputs import LabelledColumns, echo_notes, load_model, read_for_model
from aucforest.cli._options import takes_read_options
from aucforest.estimators.refreshing import refresh as refresh_model
from aucforest.report.data import training_rows_warning
from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


@takes_read_options(for_model=True)
def refresh(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The model file to start from, a forest or a stack.")],
    data: _options.Data,
    target: _options.TargetColumn,
    out: Annotated[Path, typer.Option(metavar="NEW", help="The model file to write.")],
    positive: _options.PositiveOfModel = None,
    weight: _options.Weight = None,
    groups: _options.Groups = None,
    reference: _options.Reference = None,
    read_options: ReadOptions = DEFAULT_OPTIONS,
    json_out: _options.JsonOut = None,
    jobs: _options.Jobs = -1,
) -> None:
    """Refresh a model with labelled rows that it was not fitted to, and say whether the refreshed model ranks better.

    A model with the same parameters is fitted to the new rows. The refreshed model combines it with the old model, with
    weights that are tuned on the new rows. With few rows the old model dominates; if it is outdated, many rows replace
    it. The ROC AUCs of the old and the refreshed model on the new rows are printed, with a 95 % interval of their
    difference. The model that is fitted to these rows is scored out of bag. With --groups, out-of-bag samples and the
    interval are based on whole groups. A note says if the old model was probably trained on some of the rows.

    Example: aucforest refresh model.aucforest may.csv --target label --out refreshed.aucforest
    """
    _outputs.check_model_outputs(out, reference, json_out, [old, data])
    model = load_model(old, jobs)
    if reference is not None:
        _outputs.check_reference([target], model.classes_, data)
    rows = read_for_model(model, data, LabelledColumns(target, positive, weight, groups), read_options, is_refit=True)
    refreshed = refresh_model(model, rows.X, rows.y, rows.weight, rows.groups)
    if (note := training_rows_warning(model, rows.X, rows.y, rows.weight, model.predict_proba(rows.X))) is not None:
        echo_notes([note])
    oob_rows: Any = () if reference is None else _outputs.out_of_bag_rows(refreshed.model, target, rows.y)
    _outputs.save_model(refreshed.model, out)
    rule_text = str(model.threshold) if isinstance(model.threshold, float) else "the rule of the old model"
    lines = [str(refreshed), _outputs.describe_threshold(refreshed.model, rule_text)]
    _outputs.make_console(json_out).print(Text("\n".join(lines)))
    if reference is not None:
        _outputs.write_reference(reference, oob_rows)
    _outputs.write_json(
        json_out,
        {
            "data": rows.title,
            "old": old.name,
            "n_samples": len(rows.y),
            "old_weight": refreshed.old_weight,
            "members": dict(zip(refreshed.model.members_, refreshed.model.weights_.tolist())),
            "threshold": np.asarray(refreshed.model.threshold_).tolist(),
            "roc_auc": refreshed.roc_auc._asdict(),
            "log_loss": dict(zip(("new", "old"), refreshed.log_loss)),
        },
    )
