"""What goes wrong on a cluster, by name."""


class ClusterError(RuntimeError):
    """A Dask cluster lacks or has lost what a computation needs: workers, their memory, or the connection to it."""


class VersionMismatchError(ClusterError):
    """A worker runs other versions of the packages than the process that it works for."""


def check_versions(here: dict[str, str], there: dict[str, str], worker: str) -> None:
    """Refuse a worker whose versions differ.

    Raises
    ------
    VersionMismatchError
        With the first difference.
    """
    for name, value in here.items():
        if there.get(name) != value:
            found = there.get(name, "missing")
            raise VersionMismatchError(f"{name} is {value} here, but {found} on {worker}: install the same everywhere")
