"""DySan and the methods that it is compared with: DySan-GEN, DySan-MSDA, Olympus."""

from jaxanon.core.method import Method
from jaxanon.core.registry import register
from jaxanon.methods.common import recipes
from jaxanon.methods.common.alternating import with_phases
from jaxanon.methods.dysan.sanitizers import (
    DySanConfig,
    DySanGenConfig,
    OlympusConfig,
    sanitizer,
)


@register("dysan", config=DySanConfig, recipes=recipes.DYSAN)
def dysan(spec, config) -> Method:
    """Builds one of DySan's models for windows of ``spec``.

    Windows go through an autoencoder with noise; a predictor learns to read the public
    attribute from what comes out, a discriminator each private one, and the autoencoder
    to please the first, to leave the others guessing and to change little. DySan is a
    set of such models, over a grid of ``alpha`` and ``lambda_`` that ``sweep`` trains
    as one program, and ``jaxanon.methods.dysan.online_selection``'s choice among them.

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
    return sanitizer("dysan", spec, config)


@register("dysan_gen", config=DySanGenConfig, recipes=recipes.DYSAN_GEN)
def dysan_gen(spec, config) -> Method:
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
    rounds = config.pretraining
    method = sanitizer("dysan_gen", spec, config, distortion=False, pretraining=rounds)
    return with_phases(method, min_rounds=rounds, phases=("pretraining",))


@register("dysan_msda", config=DySanConfig, recipes=recipes.DYSAN_MSDA)
def dysan_msda(spec, config) -> Method:
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
    return sanitizer("dysan_msda", spec, config)


@register("olympus", config=OlympusConfig, recipes=recipes.OLYMPUS)
def olympus(spec, config) -> Method:
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
    return sanitizer("olympus", spec, config, distortion=False)
