"""Three real data sets with rare classes, loaded as scikit-learn loads its own."""

from aucforest.datasets.bundled import load_abalone, load_flights, load_page_blocks

__all__ = ["load_abalone", "load_flights", "load_page_blocks"]
