"""Trees and forests that are grown for ranking."""

__version__ = "0.1.0"
