"""Anonymizers of the published systems, and their registry."""

from typing import Any

from jaxanon.core import registry
from jaxanon.core.method import Method
from jaxanon.methods.blinder.blinder import BlinderConfig, blinder
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

NAMES = registry.registered("anonymizer")

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
    "recipes",
    "timegan",
]


def config_class(name: str) -> Any:
    """Returns the config dataclass of an anonymizer.

    Raises:
      ValueError: if the name is unknown.

    Example:
      >>> config_class("blinder").__name__
      'BlinderConfig'
    """
    return registry.entry(name, "anonymizer").config


def build(name: str, spec, **settings) -> Method:
    """Builds an anonymizer by name for windows of ``spec``.

    Args:
      name: one of ``NAMES``, or a name registered with ``jaxanon.register``.
      spec: ``jaxanon.datasets.Spec``.
      **settings: ``recipe``, one of ``recipes(name)``, and fields of
        ``config_class(name)``, which override the recipe.

    Raises:
      ValueError: if the name or the recipe is unknown, or a setting is out of range.
      TypeError: if a setting is unknown.
    """
    registry.entry(name, "anonymizer")
    return registry.build(name, spec, **settings)


def recipes(name: str) -> dict[str, registry.Recipe]:
    """Returns an anonymizer's recipes by name, starting with the default.

    Raises:
      ValueError: if the name is unknown.

    Example:
      >>> [*recipes("blinder")]
      ['recommended', 'paper', 'official', 'fast']
      >>> recipes("blinder")["paper"].settings["gamma"]
      0.2
    """
    return dict(registry.entry(name, "anonymizer").recipes)
