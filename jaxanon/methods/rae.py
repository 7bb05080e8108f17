"""RAE: windows of sensitive classes become neutral ones, all others stay."""

import dataclasses

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods import replacing
from jaxanon.methods.central import central
from jaxanon.methods.method import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEConfig(replacing.ReplacementConfig):
    """RAE's settings."""


def rae(spec, **settings) -> Method:
    """Builds RAE, the replacement autoencoder, for windows of ``spec``.

    It knows no private attribute: of the *public* classes some are sensitive
    themselves (``black``), some neutral (``gray``), all others to be kept (white). An
    autoencoder learns to make windows of neutral classes of the black ones, and to
    leave the rest as they are; which is which it has to see by itself. What the kept
    windows tell of a wearer they go on telling.

    Differences from the original: the network, batch and optimizer of the program for
    MotionSense; neutral windows drawn anew for every batch (``targets``).

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a list of classes is missing, empty,
        unknown, or in part the other; when data come, if one has no windows.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> first, second = spec.classes[spec.public][:2]
      >>> rae(spec, black=(first,), gray=(second,)).name
      'rae'

    References:
      Malekzadeh, Clegg, Haddadi, Replacement AutoEncoder: A Privacy-Preserving
      Algorithm for Sensory Data Analysis, IoTDI 2018, section 4.
    """
    config = configured(RAEConfig, settings)
    config, classes = replacing.with_classes("rae", config, spec)
    nets = replacing.replacement(spec, config)
    return central(
        "rae",
        config,
        spec,
        replacing.room(spec, config, classes),
        init_fn=nets.init,
        players=(replacing.replacing(nets),),
        hyper={name: getattr(config, name) for name in replacing.HYPER},
        anonymize_fn=lambda key, params, windows: nets.rewrite(params, windows)[0],
    )
