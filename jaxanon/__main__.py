"""``python -m jaxanon``: the command line where the shell finds no ``jaxanon``."""

import sys

from jaxanon.cli.app import main

if __name__ == "__main__":  # Whoever reads every module, such as the reference, may.
    sys.exit(main())
