"""Entry point of ``python -m jaxanon.edge``."""

import sys

from jaxanon.edge.command import main

sys.exit(main())
