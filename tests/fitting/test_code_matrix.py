"""Codes in a temporary file: they can be removed from memory, and the file is removed in the end."""

import os

import numpy as np
import pytest

from aucforest.fitting.code_matrix import CodeMatrix

CODED = np.random.default_rng(0).integers(0, 255, (3, 100)).astype(np.uint8)


def make_matrix():
    return CodeMatrix(np.full(3, 255), 100)


def test_codes_are_read_again_after_they_are_released():
    matrix = make_matrix()
    assert type(matrix.codes) is np.ndarray  # for another type, kernels would be compiled again
    matrix.codes[:] = CODED
    matrix.release()
    assert np.array_equal(matrix.codes, CODED)
    matrix.codes[:, 50:] = CODED[:, :50]
    matrix.release()
    assert np.array_equal(matrix.codes, np.hstack((CODED[:, :50], CODED[:, :50])))


def test_the_file_is_gone_even_if_the_process_is_killed(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    matrix = make_matrix()
    matrix.codes[:] = CODED
    assert os.name == "nt" or list(tmp_path.iterdir()) == []  # Windows removes it when the process ends
    del matrix
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [False, True])
def test_a_full_disk_leaves_no_file(tmp_path, monkeypatch, given):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "other" if given else tmp_path))
    with pytest.raises(OSError, match=r"no room for [\d,]+ bytes of binned data") as caught:
        CodeMatrix(np.full(2**20, 255), 2**36, tmp_path if given else None)
    assert caught.value.filename == str(tmp_path)
    assert list(tmp_path.iterdir()) == []
