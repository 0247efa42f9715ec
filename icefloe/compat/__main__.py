"""`python -m icefloe.compat script.py ARGUMENTS`: runs a script that is written for PyIceberg with icefloe in its place."""

import runpy
import sys
from pathlib import Path

import icefloe.compat.pyiceberg  # noqa: F401 - for what it does


def main() -> None:
    """Run the script that is named."""
    if len(sys.argv) < 2:
        sys.exit("usage: python -m icefloe.compat SCRIPT [ARGUMENTS]")
    script = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main()
