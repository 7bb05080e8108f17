"""Real devices: the same rounds over Flower, each client in a process of its own.

Flower is heard of in ``link`` (the server's end), ``node`` (a client's) and ``apps``
alone. Its telemetry is off unless ``FLWR_TELEMETRY_ENABLED`` says otherwise.
"""

import logging
import os
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
except ImportError as error:
    raise ImportError(
        "real devices need flwr 1.41, which is not installed, or is of another "
        "version; run pip install 'jaxanon[flower]'."
    ) from error

logging.getLogger("flwr").setLevel(logging.ERROR)
