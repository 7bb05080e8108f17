"""``python -m jaxanon.edge``: the command line of a device."""

import sys

from jaxanon.edge.command import main

sys.exit(main())
