"""Ways in and out: model files, and the formats of other libraries."""
