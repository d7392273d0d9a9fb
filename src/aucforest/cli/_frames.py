"""Frames of pandas, which reports and comparisons take."""

from typing import Any

import pandas as pd
import pyarrow as pa


def to_frame(table: Any) -> pd.DataFrame:
    """Return an arrow table as a DataFrame, where text and flags are categories and nothing is a number."""
    for place, (name, column) in enumerate(zip(table.column_names, table.columns)):
        if pa.types.is_boolean(column.type):
            table = table.set_column(place, name, column.dictionary_encode())
        elif pa.types.is_null(column.type):
            table = table.set_column(place, name, column.cast(pa.float64()))
    table = table.replace_schema_metadata(None)  # the types of pandas that wrote a Parquet
    return table.to_pandas(strings_to_categorical=True, date_as_object=False)


def model_frame(columns: Any, typed: Any) -> pd.DataFrame:
    """Return what a model takes of its columns, `ModelColumns`, which are typed."""
    frame = to_frame(typed)
    return frame if columns.has_names else frame.set_axis(range(len(columns.names)), axis=1)
