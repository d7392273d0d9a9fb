"""Ways in and out: model files, and the formats of other libraries."""

from aucforest.interop.model_file import ModelFormatError

__all__ = ["ModelFormatError"]
