"""Restoring the attributes of an object after an error."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restoring(model: object) -> Iterator[None]:
    """Restore the attributes of `model` if the block raises an exception or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise
