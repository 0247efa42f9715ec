"""`python -m icefloe COMMAND` is the command line `icefloe`."""

import sys

from icefloe.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
