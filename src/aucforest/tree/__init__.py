"""Growing and walking one tree: arrays and scalars only, no estimators, no frames."""
