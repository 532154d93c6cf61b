"""``python -m simmodel``: the command line."""

import sys

from simmodel.cli import main

if __name__ == "__main__":
    sys.exit(main())
