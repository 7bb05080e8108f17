"""Olympus as DySan re-implements it: judges that learn in turn, distortion for free."""

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods.dysan_config import OlympusConfig
from jaxanon.methods.method import Method
from jaxanon.methods.sanitizers import sanitizer


def olympus(spec, **settings) -> Method:
    """Builds Olympus by DySan's networks for windows of ``spec``.

    The idea of Olympus (Raval et al., PoPETs 2019), an obfuscator in turn with separate
    classifiers of what to keep and what to hide, by DySan's networks and losses and
    without its term of distortion. Olympus's own program could not be had.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``OlympusConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a window is too short.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> olympus(load("smartwatch").spec).config.lambda_
      0.4

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2.
    """
    config = configured(OlympusConfig, settings)
    return sanitizer("olympus", spec, config, distortion=False)
