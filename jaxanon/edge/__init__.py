"""Runtime for devices: streams of sensor samples through an exported anonymizer.

Requires only the standard library, NumPy and onnxruntime. To install it without JAX,
run ``pip install --no-deps jaxanon`` and ``pip install numpy onnxruntime paho-mqtt``.
"""

from jaxanon.edge.budget import UNBOUNDED, Budget, Exhausted
from jaxanon.edge.folder import Choice, load_folder
from jaxanon.edge.model import Attackers, Model, load, load_attackers
from jaxanon.edge.stream import Stream
from jaxanon.edge.types import Block, Signature, Window

__all__ = [
    "UNBOUNDED",
    "Attackers",
    "Block",
    "Budget",
    "Choice",
    "Exhausted",
    "Model",
    "Signature",
    "Stream",
    "Window",
    "load",
    "load_attackers",
    "load_folder",
]
