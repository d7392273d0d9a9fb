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

INSIDE = "aucforest/compiled"
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
        self._folder = TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        try:
            files, manifest = self._compile(folder)
            build_data["pure_python"], build_data["infer_tag"] = False, True
        except Exception as error:
            self.app.display_warning(f"aucforest is built without machine code, so its first fit compiles: {error}")
            # pip hides the warning; `python -m aucforest` says it
            files, manifest = {}, {"error": str(error)}
        (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")
        build_data["force_include"] |= {**files, str(folder / "manifest.json"): f"{INSIDE}/compiled_with.json"}

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what the wheel has now."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _compile(self, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
        """Compile for all levels at once; return the files with their paths in the wheel, and what they depend on."""
        sources = Path(self.root, "src")
        sys.path.insert(0, str(sources))
        from aucforest._machine_code import compiled_with, levels

        if not (here := levels()):
            raise RuntimeError("there is no level for this processor")
        self.app.display_waiting(f"Machine code for {' and '.join(here)} is compiled, which takes some minutes ...")
        _warm_up(here, folder, sources)
        files = {level: list((folder / level).rglob("*.nbc")) for level in here}
        if min(map(len, files.values())) == 0:
            raise RuntimeError("no code was written")
        included = {str(path): f"{INSIDE}/{level}/{path.name}" for level in here for path in files[level]}
        return included, compiled_with()


def _warm_up(levels: list[str], folder: Path, sources: Path) -> None:
    """Compile for each level into a folder of its name."""
    # settings of whoever builds would make other code, or none
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA_", "AUCFOREST_"))}
    inherited["PYTHONPATH"] = os.pathsep.join([str(sources), *sys.path])
    inherited["NUMBA_CPU_FEATURES"] = ""
    inherited["NUMBA_DISABLE_INTEL_SVML"] = "1"  # a library that may be absent elsewhere
    inherited["LOKY_MAX_CPU_COUNT"] = str(max((os.cpu_count() or 1) // len(levels), 1))
    command = [sys.executable, "-m", "aucforest", "warm-up"]
    running = {}
    try:
        for level in levels:
            own = {"NUMBA_CPU_NAME": level, "NUMBA_CACHE_DIR": str(folder / level)}
            running[level] = subprocess.Popen(command, env=inherited | own, stderr=subprocess.PIPE, text=True)
        for level, process in running.items():
            errors = process.communicate()[1].strip()
            if process.returncode:
                reason = errors.splitlines()[-1] if errors else f"the process ended with {process.returncode}"
                raise RuntimeError(f"{level}: {reason}")
    finally:
        for process in running.values():
            process.kill()
            process.wait()
            process.stderr.close()
