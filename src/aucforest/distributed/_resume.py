"""Finished trees of a fit on a cluster, in files."""

from hashlib import blake2b
from typing import Any

from aucforest.distributed._executor import DaskExecutor
from aucforest.fitting.bootstrap import BLOCK_ROWS
from aucforest.fitting.checkpoint import Checkpoint
from aucforest.fitting.claims import describe_fit
from aucforest.fitting.coding import Coding
from aucforest.fitting.parts import CodedPart
from aucforest.fitting.target import Target

# Parameters that trees do not depend on.
_FREE = {"random_state", "strategy", "local_rows", "max_hist_bytes", "checkpoint_dir", "client"}


def open_checkpoint(
    params: dict[str, Any], seed: int, target: Target, coding: Coding, parts: list[Any], executor: DaskExecutor
) -> Checkpoint:
    """Return the folder of a fit's trees, which names all that trees depend on.

    Raises
    ------
    ValueError
        If the folder is that of another fit, or random_state is no integer: another fit would draw otherwise.
    """
    description = describe_fit(params, seed, "checkpoint_dir", _FREE)
    by_block = executor.gather([executor.submit(_digest_blocks, part) for part in parts])
    weights = target.sample_weight
    manifest = {
        "the digest of the values": _digest(b"".join(by_block)),
        "the digest of the bins": _digest(b"".join(array.tobytes() for array in coding.values)),
        "the classes": target.classes,
        "the digest of the labels": _digest(target.labels),
        "the digest of the weights": None if weights is None else _digest(weights),
        **description,
    }
    return Checkpoint(params["checkpoint_dir"], manifest, len(coding.n_bins), len(target.classes), coding.kinds)


def _digest(data: Any) -> str:
    """Return a digest of bytes or of an array."""
    return blake2b(data, digest_size=16).hexdigest()


def _digest_blocks(part: CodedPart) -> bytes:
    """Return digests of blocks of codes: however rows are cut into parts, together they are the same."""
    starts = range(0, part.n_rows, BLOCK_ROWS)
    blocks = [part.codes[:, start : start + BLOCK_ROWS].tobytes() for start in starts]
    return b"".join(blake2b(block, digest_size=8).digest() for block in blocks)
