"""Codes in a file: what is recorded is there, what is not there is not believed."""

import os

import numpy as np
import pytest

from aucforest._compile import kernel
from aucforest.fitting.code_matrix import CODES, RECORD, CodeMatrix
from aucforest.persistence.model_file import write_model

CODED = np.random.default_rng(0).integers(0, 255, (3, 100)).astype(np.uint8)


def open_matrix(folder, fit="a", most=255, shape=CODED.shape):
    return CodeMatrix(folder, np.full(shape[0], most), shape[1], 2, fit)


def fill(folder, stops=(30, 60, 100), fit="a"):
    """Write rows, of which two of the source make one, up to the last of some stops."""
    matrix, start = open_matrix(folder, fit), 0
    for stop in stops:
        matrix.write(start, CODED[:, start:stop])
        matrix.known[:, 1] = start
        matrix.record(2 * stop, stop)
        start = stop
    return matrix


def test_codes_come_back(tmp_path):
    fill(tmp_path)
    matrix = open_matrix(tmp_path)
    assert np.array_equal(matrix.codes, CODED)
    assert (matrix.n_read, matrix.n_written) == (200, 100)
    assert matrix.known.tolist() == [[0.0, 60.0, 0.0]] * 2


def test_it_goes_on_after_what_is_recorded(tmp_path):
    matrix = fill(tmp_path, (30, 60))
    matrix.write(60, CODED[:, 60:80])  # killed here
    again = open_matrix(tmp_path)
    assert (again.n_read, again.n_written) == (120, 60)
    again.write(60, CODED[:, 60:])
    again.record(200, 100)
    assert np.array_equal(open_matrix(tmp_path).codes, CODED)
    assert open_matrix(tmp_path).n_written == 100


@pytest.mark.parametrize(("byte", "n_good"), [(0, 0), (129, 0), (130, 30), (59, 30), (299, 60), (260, 60)])
def test_what_is_damaged_is_written_again(tmp_path, byte, n_good):
    fill(tmp_path)
    with (tmp_path / CODES).open("r+b") as file:
        file.seek(byte)
        old = file.read(1)
        file.seek(byte)
        file.write(bytes([old[0] ^ 1]))
    assert open_matrix(tmp_path).n_written == n_good


def test_codes_beyond_the_bins_are_written_again(tmp_path):
    fill(tmp_path)
    assert open_matrix(tmp_path, most=int(CODED.max())).n_written == 100
    assert open_matrix(tmp_path, most=int(CODED.max()) - 1).n_written < 100


def test_chunks_that_do_not_rise_are_not_believed(tmp_path):
    matrix = fill(tmp_path)
    checksum = matrix._checksum(0, 100)
    write_model(tmp_path / RECORD, {"chunks": np.array([[10, 101, checksum]]), "known": matrix.known}, {"fit": "a"})
    assert open_matrix(tmp_path).n_written == 0


def test_files_of_another_size_or_fit_are_begun_anew(tmp_path):
    fill(tmp_path)
    assert open_matrix(tmp_path, "b").n_written == 0
    fill(tmp_path)
    os.truncate(tmp_path / CODES, 299)
    assert open_matrix(tmp_path).n_written == 0
    fill(tmp_path)
    assert open_matrix(tmp_path, most=1000).n_written == 0
    assert not (tmp_path / RECORD).exists()
    fill(tmp_path)
    (tmp_path / RECORD).write_bytes((tmp_path / RECORD).read_bytes()[:-1])
    assert open_matrix(tmp_path).n_written == 0
    write_model(tmp_path / RECORD, {"chunks": np.zeros((1, 2), np.int64), "known": np.zeros((2, 3))}, {"fit": "a"})
    assert open_matrix(tmp_path).n_written == 0


def test_without_a_folder_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert np.array_equal(fill(None, fit=None).codes, CODED)
    assert list(tmp_path.iterdir()) == []
    assert open_matrix(None, fit=None).n_written == 0


@pytest.mark.parametrize("kept", [True, False])
def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch, kept):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(OSError, match=r"no room for [\d,]+ bytes of codes"):
        CodeMatrix(tmp_path if kept else None, np.full(2**20, 255), 2**36, 0, "a" if kept else None)
    assert list(tmp_path.iterdir()) == []


def test_a_map_is_an_ordinary_array_to_numba(tmp_path):
    """Read-only arrays, and those of a class of their own, would be compiled for anew."""

    @kernel
    def total(codes):
        return codes.sum()

    matrix = fill(tmp_path)
    assert total(matrix.codes) == total(CODED)
    assert len(total.signatures) == 1
