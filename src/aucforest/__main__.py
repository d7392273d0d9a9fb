"""``python -m aucforest`` and the command ``aucforest``."""

import sys

from aucforest._optional import import_optional


def main() -> None:
    """Run the command line, or print one sentence if a package that it needs is missing."""
    try:
        if sys.argv[1:] in (["warm-up"], ["warm-up", "--native"]):  # needs none of the packages imported below
            from aucforest.cli.warm_up import warm_up

            return warm_up(native="--native" in sys.argv)
        if not sys.argv[1:]:
            from aucforest import _machine_code

            print(_machine_code.status())
            sys.argv.append("--help")
        for module in ("typer", "rich", "pandas", "pyarrow"):
            import_optional(module, purpose="the command line", extra="cli")
        from aucforest.cli.app import app
    except (ImportError, OSError, ValueError) as error:
        if sys.argv[1:] == ["--help"]:  # Help succeeds without the packages, and says how to install them.
            return print(error)
        sys.exit(str(error))
    except KeyboardInterrupt:  # Ctrl-C during the imports, which take a second, prints no traceback.
        sys.exit(130)
    app(prog_name="aucforest")


if __name__ == "__main__":
    main()
