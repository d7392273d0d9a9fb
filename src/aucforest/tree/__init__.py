"""Growing and traversing single trees, on arrays and scalars, without estimators or data frames."""
