"""Import of optional packages, with an error message that names the extra to install."""

from importlib import import_module
from types import ModuleType


def import_optional(module: str, *, purpose: str, extra: str) -> ModuleType:
    """Import and return `module`; if it is missing, the ImportError names the extra of aucforest that installs it.

    >>> import_optional("no_such_module", purpose="flying", extra="wings")
    Traceback (most recent call last):
    ImportError: flying needs no_such_module: pip install aucforest[wings]
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{purpose} needs {package}: pip install aucforest[{extra}]") from error
