"""Loaders of three real data sets with rare classes, with the interface of `sklearn.datasets`."""

from aucforest.datasets.bundled import load_abalone, load_flights, load_page_blocks

__all__ = ["load_abalone", "load_flights", "load_page_blocks"]
