"""Error messages for invalid options of text files, and the decimal mark that follows from other options."""

import pytest

from aucforest.tables.read_options import DEFAULT_OPTIONS, ReadOptions


@pytest.mark.parametrize(("options", "sentence"), [
    ({"decimal": ";"}, "decimal must be one of '.', ',', but is ';'"), ({"decimal": ""}, "decimal must be one of"),
    ({"thousands": "_"}, "thousands must be one of '.', ',', \"'\", ' ', but is '_'"),
    ({"decimal": ",", "thousands": ","}, "the decimal mark and that between thousands are the same, ','"),
    ({"date_format": "day"}, "the format of dates must be one of strptime, such"),
    ({"date_format": "%Q"}, "the format of dates must be one of strptime, such"),
    ({"date_format": "%d.%m.%Y %z"}, "the format of dates must be one of strptime, without the time zone, such"),
    *(({"encoding": name}, "the encoding must be one that Python has, such as") for name in ("", "nope", "hex")),
    *(({"separator": mark}, "the separator must be one character") for mark in ("", ";;", '"', "\n", "§")),
])  # fmt: skip
def test_invalid_options(options, sentence):
    with pytest.raises(ValueError) as caught:
        ReadOptions(**options).check()
    assert str(caught.value).startswith(sentence)


def test_the_decimal_mark_follows_from_the_thousands_separator():
    marks = {(None, None): None, (None, ","): ".", (None, "."): ",", (None, " "): None}
    for (decimal, thousands), mark in (marks | dict.fromkeys([(",", None), (",", "."), (",", " ")], ",")).items():
        assert ReadOptions(decimal=decimal, thousands=thousands).check().point_or_comma == mark
    assert (ReadOptions(r"\t").check().separator, DEFAULT_OPTIONS.check()) == ("\t", DEFAULT_OPTIONS)


def test_formats_of_dates_may_have_a_time():
    forms = ("%d/%m/%Y %H:%M:%S", "%Y-%m-%d %H:%M", "%d%b%Y:%H:%M:%S", "%I:%M:%S %p %d.%m.%y", "%Y-%m-%d-%H.%M.%S.%f")
    for form in forms:
        assert ReadOptions(date_format=form).check().date_format == form
