"""The build hook of the wheel: machine code for the levels of processors, so that the first fit does not compile.

``AUCFOREST_PURE=1`` builds a wheel without it. An editable installation has none, and compiles as sources change.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

IS_PURE = os.environ.get("AUCFOREST_PURE", "0") not in ("", "0")


class MachineCodeHook(BuildHookInterface):
    """Runs the package's own warm-up for each level, and adds the files that it leaves to the wheel."""

    def dependencies(self) -> list[str]:
        """Return what the warm-up needs, the dependencies of the package."""
        return [] if IS_PURE else list(self.metadata.core.dependencies)

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add the files; without machine code, the wheel is pure."""
        if IS_PURE or version == "editable":
            return
        self._folder = TemporaryDirectory()
        try:
            files = self._compile(Path(self._folder.name))
        except Exception as error:
            self.app.display_warning(f"aucforest is built without machine code, so its first fit compiles: {error}")
            return
        build_data["force_include"].update(files)
        build_data["pure_python"], build_data["infer_tag"] = False, True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel has now."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _compile(self, folder: Path) -> dict[str, str]:
        """Compile for all levels at once; return the files with their paths in the wheel."""
        sources = Path(self.root, "src")
        sys.path.insert(0, str(sources))
        from aucforest._machine_code import MANIFEST, SHIPPED_FOLDER, compiled_with, levels

        self.app.display_waiting(
            f"Machine code for {' and '.join(levels())} is compiled, which takes one to two minutes ..."
        )
        n_cpus = max((os.cpu_count() or 1) // len(levels()), 1)
        running = {level: _warm_up(level, folder / level, sources, n_cpus) for level in levels()}
        for level, process in running.items():
            errors = process.communicate()[1]
            if process.returncode:
                raise RuntimeError(f"{level}: {(errors.strip().splitlines() or ['no message'])[-1]}")
        (folder / MANIFEST).write_text(json.dumps(compiled_with(), indent=2) + "\n")
        inside = SHIPPED_FOLDER.relative_to(sources)
        files = {str(path): str(inside / path.parents[1].name / path.name) for path in folder.glob("*/*/*.nbc")}
        return {str(folder / MANIFEST): str(inside / MANIFEST), **files}


def _warm_up(level: str, folder: Path, sources: Path, n_cpus: int) -> subprocess.Popen:
    """Start to compile for a level into a folder, on some of the processors."""
    own = {
        "PYTHONPATH": os.pathsep.join([str(sources), *sys.path]),
        "NUMBA_CACHE_DIR": str(folder),
        "NUMBA_CPU_NAME": level,
        "NUMBA_CPU_FEATURES": "",
        "LOKY_MAX_CPU_COUNT": str(n_cpus),
        "NUMBA_DISABLE_INTEL_SVML": "1",  # a library that may be absent elsewhere
    }
    command = [sys.executable, "-m", "aucforest", "warm-up"]
    return subprocess.Popen(command, env={**os.environ, **own}, stderr=subprocess.PIPE, text=True)
