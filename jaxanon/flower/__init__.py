"""Real devices: the same rounds over Flower, each client in a process of its own.

Flower is heard of in ``link`` (the server's end), ``node`` (a client's) and ``apps``
alone. Its telemetry is off unless ``FLWR_TELEMETRY_ENABLED`` says otherwise.
"""

import logging
import math
import os
import time
import warnings

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
try:
    with warnings.catch_warnings():
        # What Flower imports warns of its own past.
        warnings.simplefilter("ignore")
        import flwr.clientapp
        import flwr.serverapp
        import flwr.superlink.routers.fleet.router
        import flwr.supernode.fleet_http_client  # noqa: F401
        from flwr.supercore.logger import ConsoleHandler
except ImportError as error:
    raise ImportError(
        "real devices need flwr 1.41, which is not installed, or is of another "
        "version; run pip install 'jaxanon[flower]'."
    ) from error


def _refusals_in_a_line():
    """A filter for what Flower's server says of whoever it does not take."""
    last = -math.inf

    def keep(record):
        nonlocal last
        if "Attempted to register SuperNode" not in record.getMessage():
            return True
        if time.monotonic() - last < 60:  # It tries again and again.
            return False
        last = time.monotonic()
        record.msg = (
            "a client was refused that has none of --client-keys, or one by which "
            "another is there"
        )
        record.args = ()
        return True

    return keep


def _quietly():
    """Flower says errors alone, once, and without colours, which a file would keep."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("jaxanon: %(message)s"))
    logger = logging.getLogger("flwr")
    # Whoever else listens there goes on.
    others = [own for own in logger.handlers if not isinstance(own, ConsoleHandler)]
    logger.handlers = [*others, handler]
    logger.setLevel(logging.ERROR)
    logger.propagate = False  # Or all of it is said twice.
    logger.addFilter(_refusals_in_a_line())


_quietly()
