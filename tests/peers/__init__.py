"""Tests of other libraries (peers), run with classes and functions of `aucforest` in place of theirs."""
