"""The published systems, each a tuple of pure functions."""

from jaxanon.core.method import Method
from jaxanon.kernels.checks import one_of
from jaxanon.methods.blinder.blinder import BLINDER_PAPER, BlinderConfig, blinder
from jaxanon.methods.blinder.fed_blinder import FedBlinderConfig, fed_blinder
from jaxanon.methods.blinder.kd_blinder import KDBlinderConfig, kd_blinder
from jaxanon.methods.common.personalise import personalise
from jaxanon.methods.deeprotect.config import DEEProtectConfig
from jaxanon.methods.deeprotect.deeprotect import deeprotect
from jaxanon.methods.dysan.dysan import dysan, dysan_gen, dysan_msda, olympus
from jaxanon.methods.dysan.sanitizers import DySanConfig, DySanGenConfig, OlympusConfig
from jaxanon.methods.gan.conditional import (
    CGANConfig,
    OccupancyGANConfig,
    cgan,
    occupancy_gan,
)
from jaxanon.methods.gan.timegan import timegan
from jaxanon.methods.gan.timegan_networks import TimeGANConfig
from jaxanon.methods.guided_diffusion.cloak import cloak
from jaxanon.methods.guided_diffusion.guidance import CloakConfig, PrivDiffuserConfig
from jaxanon.methods.guided_diffusion.privdiffuser import privdiffuser
from jaxanon.methods.malekzadeh.anonymizing import AAEConfig, MSDAConfig, aae, msda
from jaxanon.methods.malekzadeh.gen import GENConfig, gen
from jaxanon.methods.malekzadeh.replacement import RAEAAEConfig, RAEConfig, rae, rae_aae
from jaxanon.methods.obscurenet.baselines import (
    AttributeVAEConfig,
    CAEConfig,
    CVAEConfig,
    GeneralVAEConfig,
    attribute_vae,
    cae,
    cvae,
    general_vae,
)
from jaxanon.methods.obscurenet.obscurenet import ObscureNetConfig, obscurenet
from jaxanon.methods.orf import ORFConfig, orf
from jaxanon.methods.privatehub.config import PrivateHubConfig
from jaxanon.methods.privatehub.privatehub import privatehub

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
    "BLINDER_PAPER",
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
    "default_epochs",
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


def default_epochs(name: str | None) -> int:
    """Epochs that a method or learner of that name is trained for by default.

    Example:
      >>> default_epochs("blinder"), default_epochs("obscurenet")
      (22, 20)
    """
    return 22 if name == "blinder" else 20


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
