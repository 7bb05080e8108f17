"""The published systems, each a tuple of pure functions."""

from jaxanon.kernels.checks import one_of
from jaxanon.methods.aae import AAEConfig, aae
from jaxanon.methods.attribute_vae import AttributeVAEConfig, attribute_vae
from jaxanon.methods.blinder import blinder
from jaxanon.methods.blinder_config import BlinderConfig
from jaxanon.methods.cae import CAEConfig, cae
from jaxanon.methods.cgan import cgan
from jaxanon.methods.cloak import cloak
from jaxanon.methods.cvae import CVAEConfig, cvae
from jaxanon.methods.deeprotect import deeprotect
from jaxanon.methods.deeprotect_config import DEEProtectConfig
from jaxanon.methods.dysan import dysan
from jaxanon.methods.dysan_config import DySanConfig, DySanGenConfig, OlympusConfig
from jaxanon.methods.dysan_gen import dysan_gen
from jaxanon.methods.dysan_msda import dysan_msda
from jaxanon.methods.fed_blinder import FedBlinderConfig, fed_blinder
from jaxanon.methods.gan_config import CGANConfig, OccupancyGANConfig
from jaxanon.methods.gen import GENConfig, gen
from jaxanon.methods.general_vae import GeneralVAEConfig, general_vae
from jaxanon.methods.guided_config import CloakConfig, PrivDiffuserConfig
from jaxanon.methods.kd_blinder import KDBlinderConfig, kd_blinder
from jaxanon.methods.method import Method
from jaxanon.methods.msda import MSDAConfig, msda
from jaxanon.methods.obscurenet import ObscureNetConfig, obscurenet
from jaxanon.methods.occupancy_gan import occupancy_gan
from jaxanon.methods.olympus import olympus
from jaxanon.methods.orf import ORFConfig, orf
from jaxanon.methods.personal import personalise
from jaxanon.methods.privatehub import privatehub
from jaxanon.methods.privatehub_config import PrivateHubConfig
from jaxanon.methods.privdiffuser import privdiffuser
from jaxanon.methods.rae import RAEConfig, rae
from jaxanon.methods.rae_aae import RAEAAEConfig, rae_aae
from jaxanon.methods.timegan import timegan
from jaxanon.methods.timegan_config import TimeGANConfig

_BUILDERS = {
    "aae": (aae, AAEConfig),
    "attribute_vae": (attribute_vae, AttributeVAEConfig),
    "blinder": (blinder, BlinderConfig),
    "cae": (cae, CAEConfig),
    "cgan": (cgan, CGANConfig),
    "cloak": (cloak, CloakConfig),
    "cvae": (cvae, CVAEConfig),
    "deeprotect": (deeprotect, DEEProtectConfig),
    "dysan": (dysan, DySanConfig),
    "dysan_gen": (dysan_gen, DySanGenConfig),
    "dysan_msda": (dysan_msda, DySanConfig),
    "fed_blinder": (fed_blinder, FedBlinderConfig),
    "gen": (gen, GENConfig),
    "general_vae": (general_vae, GeneralVAEConfig),
    "kd_blinder": (kd_blinder, KDBlinderConfig),
    "msda": (msda, MSDAConfig),
    "obscurenet": (obscurenet, ObscureNetConfig),
    "occupancy_gan": (occupancy_gan, OccupancyGANConfig),
    "olympus": (olympus, OlympusConfig),
    "orf": (orf, ORFConfig),
    "privatehub": (privatehub, PrivateHubConfig),
    "privdiffuser": (privdiffuser, PrivDiffuserConfig),
    "rae": (rae, RAEConfig),
    "rae_aae": (rae_aae, RAEAAEConfig),
    "timegan": (timegan, TimeGANConfig),
}
NAMES = tuple(_BUILDERS)

__all__ = [
    "NAMES",
    "AAEConfig",
    "AttributeVAEConfig",
    "BlinderConfig",
    "CAEConfig",
    "CGANConfig",
    "CVAEConfig",
    "CloakConfig",
    "DEEProtectConfig",
    "DySanConfig",
    "DySanGenConfig",
    "FedBlinderConfig",
    "GENConfig",
    "GeneralVAEConfig",
    "KDBlinderConfig",
    "MSDAConfig",
    "Method",
    "ORFConfig",
    "ObscureNetConfig",
    "OccupancyGANConfig",
    "OlympusConfig",
    "PrivDiffuserConfig",
    "PrivateHubConfig",
    "RAEAAEConfig",
    "RAEConfig",
    "TimeGANConfig",
    "aae",
    "attribute_vae",
    "blinder",
    "build",
    "cae",
    "cgan",
    "cloak",
    "config_class",
    "cvae",
    "deeprotect",
    "dysan",
    "dysan_gen",
    "dysan_msda",
    "fed_blinder",
    "gen",
    "general_vae",
    "kd_blinder",
    "msda",
    "obscurenet",
    "occupancy_gan",
    "olympus",
    "orf",
    "personalise",
    "privatehub",
    "privdiffuser",
    "rae",
    "rae_aae",
    "timegan",
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
    one_of("method", name, sorted(NAMES))
    return _BUILDERS[name]
