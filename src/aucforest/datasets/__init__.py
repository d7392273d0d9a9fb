"""Two small real data sets with rare classes, in scikit-learn's manner."""

from aucforest.datasets.bundled import load_abalone, load_page_blocks

__all__ = ["load_abalone", "load_page_blocks"]
