"""What is said about invalid formats of CSV files."""

import pytest

from aucforest.tables import csv_format


@pytest.mark.parametrize("separator", ["", ";;", '"', "\n", "§"])
def test_invalid_separators(separator):
    with pytest.raises(ValueError, match="the separator must be one character, such as ';'"):
        csv_format.check_separator(separator)


@pytest.mark.parametrize("encoding", ["", "nope", "hex"])
def test_invalid_encodings(encoding):
    with pytest.raises(ValueError, match="the encoding must be one that Python has, such as cp1252 or utf-16, but is"):
        csv_format.check_encoding(encoding)
