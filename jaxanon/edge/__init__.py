"""On the device: a stream of samples through an anonymizer; what fails never leaves.

Needs the standard library, NumPy and onnxruntime, no JAX: on a phone, watch or hub
``pip install --no-deps jaxanon`` and ``pip install numpy onnxruntime paho-mqtt`` do.
"""

from jaxanon.edge.budget import UNBOUNDED, Budget, Exhausted
from jaxanon.edge.model import Attackers, Model, load, load_attackers
from jaxanon.edge.stream import Stream
from jaxanon.edge.types import Block, Signature, Window

__all__ = [
    "UNBOUNDED",
    "Attackers",
    "Block",
    "Budget",
    "Exhausted",
    "Model",
    "Signature",
    "Stream",
    "Window",
    "load",
    "load_attackers",
]
