"""``python -m aucforest`` and the command ``aucforest``."""

import atexit
import os
import sys
from contextlib import suppress

from aucforest._optional import import_optional


def main() -> None:
    """Run the command line, or say in one sentence how to get it."""
    try:
        if sys.argv[1:] in (["warm-up"], ["warm-up", "--native"]):
            from aucforest.cli.warm_up import warm_up

            return warm_up(native="--native" in sys.argv)
        if not sys.argv[1:]:
            from aucforest._machine_code import status

            print(status())
            sys.argv.append("--help")
        for module in ("typer", "rich", "pandas", "pyarrow"):
            import_optional(module, purpose="the command line", extra="cli")
        from aucforest.cli.app import app
    except (ImportError, OSError, ValueError) as error:
        if sys.argv[1:] == ["--help"]:
            return print(error)
        sys.exit(str(error))
    except KeyboardInterrupt:  # imports take a second
        sys.exit(130)
    try:
        app(prog_name="aucforest")
    except SystemExit as ended:
        if not ended.code:
            raise
        # A thread of Arrow may still wait for standard input: if it wakes up while Python ends, the process aborts.
        atexit._run_exitfuncs()  # which remove temporary files
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(ended.code if isinstance(ended.code, int) else 1)


if __name__ == "__main__":
    main()
