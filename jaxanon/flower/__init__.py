"""Real devices: the same rounds over Flower, each client in a process of its own.

``records`` has Flower's two apps, ``programs`` runs Flower's commands, and
``server_transport`` and ``client_transport`` tie both to ``server`` and ``client``.
Flower's telemetry is off unless ``FLWR_TELEMETRY_ENABLED`` says otherwise, and so is
its look for updates unless ``FLWR_DISABLE_UPDATE_CHECK`` does.
"""

import os
import warnings

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # What Flower imports warns of its own past.
        import flwr.app
        import flwr.clientapp
        import flwr.serverapp  # noqa: F401
except ImportError as error:
    raise ImportError(
        "real devices need flwr 1.41 or newer; run pip install 'jaxanon[flower]'."
    ) from error
