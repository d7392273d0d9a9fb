"""Model files: fitted trees and forests in safetensors."""

from aucforest.persistence.model_file import ModelFormatError

__all__ = ["ModelFormatError"]
