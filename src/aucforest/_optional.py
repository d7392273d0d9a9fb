"""Optional packages: imported where they are used, and named by their extra when they are missing."""

from importlib import import_module
from types import ModuleType


def import_optional(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Import `module`, or raise an ImportError that says what needs it and which extra of aucforest brings it.

    >>> import_optional("no_such_module", purpose="flying", extra="wings")
    Traceback (most recent call last):
    ImportError: flying needs no_such_module: pip install aucforest[wings]
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install aucforest[{extra}]") from error
