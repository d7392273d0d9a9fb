"""Tables of arrow: where they come from, what their columns are, and labels in them. Imports pyarrow."""
