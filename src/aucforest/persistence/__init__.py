"""Model files in the safetensors format."""

from aucforest.persistence.model_file import ModelFormatError

__all__ = ["ModelFormatError"]
