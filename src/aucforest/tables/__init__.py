"""Tables as columns: frames, Arrow, Parquet and text; their categories, labels and weights."""
