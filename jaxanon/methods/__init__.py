"""The published systems, each a tuple of pure functions."""

from jaxanon.methods.attribute_vae import AttributeVAEConfig, attribute_vae
from jaxanon.methods.blinder import blinder
from jaxanon.methods.blinder_config import BlinderConfig
from jaxanon.methods.cae import CAEConfig, cae
from jaxanon.methods.cvae import CVAEConfig, cvae
from jaxanon.methods.dysan import dysan
from jaxanon.methods.dysan_config import DySanConfig, DySanGenConfig, OlympusConfig
from jaxanon.methods.dysan_gen import dysan_gen
from jaxanon.methods.dysan_msda import dysan_msda
from jaxanon.methods.fed_blinder import FedBlinderConfig, fed_blinder
from jaxanon.methods.general_vae import GeneralVAEConfig, general_vae
from jaxanon.methods.kd_blinder import KDBlinderConfig, kd_blinder
from jaxanon.methods.method import Method
from jaxanon.methods.obscurenet import ObscureNetConfig, obscurenet
from jaxanon.methods.olympus import olympus
from jaxanon.methods.orf import ORFConfig, orf
from jaxanon.methods.personal import personalise

_BUILDERS = {
    "attribute_vae": (attribute_vae, AttributeVAEConfig),
    "blinder": (blinder, BlinderConfig),
    "cae": (cae, CAEConfig),
    "cvae": (cvae, CVAEConfig),
    "dysan": (dysan, DySanConfig),
    "dysan_gen": (dysan_gen, DySanGenConfig),
    "dysan_msda": (dysan_msda, DySanConfig),
    "fed_blinder": (fed_blinder, FedBlinderConfig),
    "general_vae": (general_vae, GeneralVAEConfig),
    "kd_blinder": (kd_blinder, KDBlinderConfig),
    "obscurenet": (obscurenet, ObscureNetConfig),
    "olympus": (olympus, OlympusConfig),
    "orf": (orf, ORFConfig),
}
NAMES = tuple(_BUILDERS)

__all__ = [
    "NAMES",
    "AttributeVAEConfig",
    "BlinderConfig",
    "CAEConfig",
    "CVAEConfig",
    "DySanConfig",
    "DySanGenConfig",
    "FedBlinderConfig",
    "GeneralVAEConfig",
    "KDBlinderConfig",
    "Method",
    "ORFConfig",
    "ObscureNetConfig",
    "OlympusConfig",
    "attribute_vae",
    "blinder",
    "build",
    "cae",
    "config_class",
    "cvae",
    "dysan",
    "dysan_gen",
    "dysan_msda",
    "fed_blinder",
    "general_vae",
    "kd_blinder",
    "obscurenet",
    "olympus",
    "orf",
    "personalise",
]


def config_class(name: str):
    """The frozen dataclass of a method's static settings.

    Raises:
      ValueError: if there is no such method.

    Example:
      >>> config_class("blinder").__name__
      'BlinderConfig'
    """
    return _entry(name)[1]


def build(name: str, spec, **settings) -> Method:
    """The method of that name for windows of ``spec``.

    Args:
      name: one of ``NAMES``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``config_class(name)``.

    Raises:
      ValueError: if there is no such method, or a setting is out of range.
    """
    return _entry(name)[0](spec, **settings)


def _entry(name):
    if name not in _BUILDERS:
        raise ValueError(f"method must be one of {sorted(_BUILDERS)}, got {name!r}.")
    return _BUILDERS[name]
