"""GEN as DySan re-implements it: judges of raw windows, frozen before it begins."""

from jaxanon.kernels.setting_checks import configured
from jaxanon.methods.dysan_config import DySanGenConfig
from jaxanon.methods.method import Method
from jaxanon.methods.sanitizers import sanitizer


def dysan_gen(spec, **settings) -> Method:
    """Builds GEN by DySan's networks for windows of ``spec``.

    The idea of GEN (Malekzadeh et al., W-P2DS 2018) by DySan's networks and losses:
    for the first ``pretraining`` rounds predictor and discriminators learn on raw
    windows; then they are frozen, without dropout, and the sanitizer learns to please
    and to escape them, paying nothing for distortion.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``DySanGenConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a window is too short.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> dysan_gen(load("smartwatch").spec).config.pretraining
      300

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2.
    """
    config = configured(DySanGenConfig, settings)
    rounds = config.pretraining
    method = sanitizer("dysan_gen", spec, config, distortion=False, pretraining=rounds)
    return method._replace(least_rounds=rounds, phases=("pretraining",))
