"""Files that commands write."""

from io import BytesIO
from pathlib import Path
from typing import Any

from aucforest.cli._messages import refuse

PICTURES = (".png", ".svg", ".pdf")


def check_outputs(*outs: Path | None, inputs: list[Path | None]) -> None:
    """Refuse outputs that overwrite a file of this call or have no folder, and a picture of no known kind."""
    taken = {file.resolve() for file in inputs if file is not None}
    for out in outs:
        if out is None:
            continue
        if not out.parent.is_dir():
            refuse(f"the folder {out.parent} does not exist")
        if out.is_dir():
            refuse(f"{out} is a folder, not a file to write")
        if out.resolve() in taken:
            refuse(f"{out} would be overwritten: it is read, or another output")
        taken.add(out.resolve())
    picture = outs[-1]  # the last is always --plot
    if picture is not None and picture.suffix not in PICTURES:
        refuse(f"--plot must end in {', '.join(PICTURES)}, got {picture.name}")


def picture_bytes(figure: Any, kind: str) -> bytes:
    """Return a figure as a file of the kind."""
    content = BytesIO()
    figure.savefig(content, format=kind, dpi=150)
    return content.getvalue()
