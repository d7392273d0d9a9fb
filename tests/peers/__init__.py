"""Tests of other libraries, run with what `aucforest` has in place of theirs."""
