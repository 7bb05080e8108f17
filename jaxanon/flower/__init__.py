"""Federated training on real devices over Flower, one process per client.

``records`` defines the two Flower apps, ``programs`` runs Flower's commands, and
``server_transport`` and ``client_transport`` connect both to ``server`` and ``client``.
Flower's telemetry and update check are off unless ``FLWR_TELEMETRY_ENABLED`` or
``FLWR_DISABLE_UPDATE_CHECK`` is set.
"""

import os
import warnings

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")
os.environ.setdefault("FLWR_DISABLE_UPDATE_CHECK", "1")
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Deprecations inside Flower's imports.
        import flwr.app
        import flwr.clientapp
        import flwr.serverapp  # noqa: F401
except ImportError as error:
    raise ImportError(
        "jaxanon.flower requires flwr 1.41 or newer; pip install 'jaxanon[flower]'."
    ) from error
