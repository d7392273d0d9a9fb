"""How much memory a step allocates."""

import tracemalloc
from contextlib import contextmanager


@contextmanager
def peak_below(n_bytes):
    """Fail if the allocations within take `n_bytes` or more at any time."""
    tracemalloc.start()
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < n_bytes
