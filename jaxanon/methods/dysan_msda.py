"""MSDA as DySan re-implements it: one of DySan's models."""

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods.dysan_config import DySanConfig
from jaxanon.methods.method import Method
from jaxanon.methods.sanitizers import sanitizer


def dysan_msda(spec, **settings) -> Method:
    """Builds MSDA by DySan's networks for windows of ``spec``.

    The idea of MSDA (Malekzadeh et al., IoTDI 2019), adversaries in turn with an
    autoencoder that pays for distortion, by the networks and losses of DySan: the model
    of its grid at ``alpha`` 0.6 and ``lambda_`` 0.3, the same for everybody. The
    original, by networks and losses of its own, is ``msda``.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``DySanConfig``.

    Returns:
      ``Method``; raises as ``dysan``.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = dysan_msda(load("smartwatch").spec)
      >>> method.name, method.config.alpha, method.config.lambda_
      ('dysan_msda', 0.6, 0.3)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2; the loss is eq. 3 of section 3.1.
    """
    return sanitizer("dysan_msda", spec, configured(DySanConfig, settings))
