"""Errors of Dask clusters."""


class ClusterError(RuntimeError):
    """Raised if a Dask cluster has too few workers or too little memory, or if the connection to it is lost."""


class VersionMismatchError(ClusterError):
    """Raised if a worker has other package versions than the client."""


def check_versions(here: dict[str, str], there: dict[str, str], worker: str) -> None:
    """Raise VersionMismatchError if the versions of a worker differ.

    Raises
    ------
    VersionMismatchError
        With the first difference.
    """
    for name, value in here.items():
        if there.get(name) != value:
            found = there.get(name, "missing")
            raise VersionMismatchError(f"{name} is {value} here, but {found} on {worker}: install the same version")
