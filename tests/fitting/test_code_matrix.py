"""Codes in a file: what is recorded is there, what is not there is not believed."""

import os
import shutil
from contextlib import closing

import numpy as np
import pytest

from aucforest.fitting.code_matrix import CODES, RECORD, CodeMatrix
from aucforest.fitting.job import JobFolder

CODED = np.random.default_rng(0).integers(0, 255, (3, 100)).astype(np.uint8)


@pytest.fixture
def job(tmp_path):
    with closing(JobFolder(tmp_path, {"seed": 0})) as job:
        yield job


def open_matrix(job, most=255):
    return CodeMatrix(job, np.full(3, most), 100, np.arange(2))


def fill(job, stops=(30, 60, 100)):
    """Write rows, of which two of the source make one, up to the last of some stops."""
    matrix, start = open_matrix(job), 0
    for stop in stops:
        matrix.write(start, CODED[:, start:stop])
        matrix.values[:, 1] = start
        matrix.record(2 * stop, stop)
        start = stop
    return matrix


def test_it_goes_on_after_what_is_recorded(job):
    matrix = fill(job, (30, 60))
    matrix.write(60, CODED[:, 60:80])  # killed here
    again = open_matrix(job)
    assert (again.n_read, again.n_written) == (120, 60)
    again.write(60, CODED[:, 60:])
    again.record(200, 100)
    whole = open_matrix(job)
    assert np.array_equal(whole.codes, CODED)
    assert (whole.n_read, whole.n_written) == (200, 100)
    assert whole.values.tolist() == [[0.0, 30.0, 0.0]] * 2


@pytest.mark.parametrize(("byte", "n_good"), [(0, 0), (129, 0), (130, 30), (59, 30), (299, 60), (260, 60)])
def test_what_is_damaged_is_written_again(job, byte, n_good):
    fill(job)
    with (job.folder / CODES).open("r+b") as file:
        file.seek(byte)
        old = file.read(1)
        file.seek(byte)
        file.write(bytes([old[0] ^ 1]))
    assert open_matrix(job).n_written == n_good


def test_codes_beyond_the_bins_and_rows_beyond_the_last_are_not_believed(job):
    matrix, most = fill(job), int(CODED.max())
    assert open_matrix(job, most=most).n_written == 100
    assert open_matrix(job, most=most - 1).n_written < 100
    rows, checksum = np.arange(2), matrix._checksum(0, 100)
    for chunk, n_written in ([200, 100, checksum], 100), ([200, 101, checksum], 0), ([0, 100, checksum], 0):
        job.write(RECORD, {"chunks": np.array([chunk]), "scored": matrix.values, "rows": rows})
        assert open_matrix(job).n_written == n_written


def test_files_of_another_size_or_fit_are_begun_anew(job, tmp_path):
    fill(job)
    with closing(JobFolder(tmp_path / "other", {"seed": 1})) as other:
        fill(other)
        shutil.copy(tmp_path / "other" / RECORD, tmp_path)
    assert open_matrix(job).n_written == 0
    fill(job)
    os.truncate(tmp_path / CODES, 299)
    assert open_matrix(job).n_written == 0
    fill(job)
    assert open_matrix(job, most=1000).n_written == 0
    assert not (tmp_path / RECORD).exists()
    fill(job)
    (tmp_path / RECORD).write_bytes((tmp_path / RECORD).read_bytes()[:-1])
    assert open_matrix(job).n_written == 0
    job.write(RECORD, {"chunks": np.zeros((1, 2), np.int64), "scored": np.zeros((2, 3))})
    assert open_matrix(job).n_written == 0


@pytest.mark.parametrize("recorded", [False, True])
def test_codes_are_read_again_after_they_are_released(job, recorded):
    matrix = CodeMatrix(job if recorded else None, np.full(3, 255), 100, np.arange(2))
    matrix.write(0, CODED)
    matrix.release()
    assert np.array_equal(matrix.codes, CODED)
    matrix.write(50, CODED[:, :50])
    matrix.release()
    assert np.array_equal(matrix.codes, np.hstack((CODED[:, :50], CODED[:, :50])))


def test_a_map_is_an_ordinary_array_for_which_nothing_is_compiled_anew(job):
    for matrix in (fill(job), open_matrix(job), fill(None)):
        assert type(matrix.codes) is np.ndarray
        assert matrix.codes.flags.writeable


def test_codes_are_released_while_a_record_is_compared(job, monkeypatch):
    fill(job)
    released = []
    monkeypatch.setattr(CodeMatrix, "release", lambda matrix: released.append(matrix.n_written))
    open_matrix(job)
    assert released == [30, 60, 100]


def test_without_a_folder_nothing_is_recorded(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert np.array_equal(fill(None).codes, CODED)
    assert list(tmp_path.iterdir()) == []
    assert open_matrix(None).n_written == 0


@pytest.mark.parametrize("kept", [True, False])
def test_a_full_disk_leaves_no_file(job, tmp_path, monkeypatch, kept):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(tmp_path.iterdir())
    with pytest.raises(OSError, match=r"no room for [\d,]+ bytes of binned data"):
        CodeMatrix(job if kept else None, np.full(2**20, 255), 2**36, np.arange(0))
    assert set(tmp_path.iterdir()) == before
