"""``python -m xgrad`` is ``xgrad``."""

import sys

from xgrad.cli import main

if __name__ == "__main__":
    sys.exit(main())
