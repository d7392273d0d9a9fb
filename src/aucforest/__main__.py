"""``python -m aucforest`` and the command ``aucforest``."""

import sys

from aucforest._optional import import_optional


def main() -> None:
    """Run the command line, or say in one sentence how to get it."""
    try:
        for module in ("typer", "rich", "pandas", "pyarrow"):
            import_optional(module, purpose="the command line", extra="cli")
    except ImportError as error:
        sys.exit(str(error))
    from aucforest.cli.app import app

    app(prog_name="aucforest")


if __name__ == "__main__":
    main()
