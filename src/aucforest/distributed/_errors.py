"""What goes wrong on a cluster, by name."""


class ClusterError(RuntimeError):
    """A Dask cluster lacks or has lost what a computation needs: workers, their memory, or the connection to it."""


class VersionMismatchError(ClusterError):
    """A worker runs other versions of the packages than the process that it works for."""
