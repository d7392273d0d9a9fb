"""Tables as columns: frames, Arrow, Parquet and CSV; their categories, labels and weights."""
