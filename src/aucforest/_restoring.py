"""What fails leaves an object as it was."""

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def restoring(model: object) -> Iterator[None]:
    """Give an object its attributes back where what is done with it fails or is interrupted."""
    before = dict(vars(model))
    try:
        yield
    except BaseException:
        model.__dict__.clear()
        model.__dict__.update(before)
        raise
