"""``python -m xgrad.cli`` is ``xgrad``."""

import sys

from xgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
