"""`python -m sharelens`."""

import sys

from sharelens.cli import main

if __name__ == "__main__":
    sys.exit(main())
