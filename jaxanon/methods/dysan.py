"""DySan: a sanitizer between a predictor and discriminators that learn against it."""

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods.dysan_config import DySanConfig
from jaxanon.methods.method import Method
from jaxanon.methods.sanitizers import sanitizer


def dysan(spec, **settings) -> Method:
    """Builds one of DySan's models for windows of ``spec``.

    Windows go through an autoencoder with noise; a predictor learns to read the public
    attribute from what comes out, a discriminator each private one, and the autoencoder
    to please the first, to leave the others guessing and to change little. DySan is a
    set of such models, over a grid of ``alpha`` and ``lambda_`` that ``sweep`` trains
    as one program, and ``jaxanon.online``'s choice among them.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``DySanConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, ``alpha + lambda_`` is 1 or more, or a
        window is too short.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = dysan(load("smartwatch").spec, alpha=0.5)
      >>> method.name, method.config.alpha
      ('dysan', 0.5)

    References:
      Boutet, Frindel, Gambs, Jourdan, Ngueveu, DySan: Dynamically sanitizing motion
      sensor data against sensitive inferences through adversarial networks, AsiaCCS
      2021: section 3.1, eq. 1 (the judges' balanced error), eq. 2 (the change), eq. 3
      (what the autoencoder pays, here as one sum); section 3.2 and Algorithm 1 (the
      turns); section 3.3 (the choice). Of eq. 3's ``1/2 - eq. 1`` the size counts: a
      discriminator that is always wrong tells as much as one that is always right;
      ``goal="published"`` has it as printed.
    """
    return sanitizer("dysan", spec, configured(DySanConfig, settings))
