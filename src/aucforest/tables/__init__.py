"""Tables in files, in memory and on streams, read in batches, with labels and weights. They need pyarrow."""
