"""DySan and its baselines: DySan-GEN, DySan-MSDA and Olympus."""

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
    """Builds one DySan model for windows of ``spec``.

    A noisy autoencoder sanitizes each window. A predictor classifies the public
    attribute of the sanitized window, and one discriminator classifies each private
    attribute. The autoencoder is trained to help the predictor, to bring the
    discriminators to chance level and to change the window little.

    The paper trains a grid of models over ``alpha`` and ``lambda_``. ``sweep`` trains
    the grid as one program, and ``jaxanon.methods.dysan.online_selection`` chooses
    among the models.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``DySanConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, ``alpha + lambda_`` is 1 or more, or a
        window is too short.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = dysan(load("smartwatch").spec, alpha=0.5)
      >>> method.name, method.config.alpha
      ('dysan', 0.5)

    References:
      Boutet, Frindel, Gambs, Jourdan, Ngueveu, DySan: Dynamically sanitizing motion
      sensor data against sensitive inferences through adversarial networks, AsiaCCS
      2021. Section 3.1 defines the classifiers' balanced error (eq. 1), the change
      (eq. 2) and the autoencoder's loss (eq. 3, here as one sum). Section 3.2 and
      Algorithm 1 define the training order, and section 3.3 the model selection.

      This implementation uses the absolute value of eq. 3's ``1/2 - eq. 1``, because a
      discriminator that is always wrong leaks as much as one that is always right.
      ``goal="published"`` uses the printed signed form.
    """
    return sanitizer("dysan", spec, config)


@register("dysan_gen", config=DySanGenConfig, recipes=recipes.DYSAN_GEN)
def dysan_gen(spec, config) -> Method:
    """Builds GEN with DySan's networks for windows of ``spec``.

    Implements the idea of GEN (Malekzadeh et al., W-P2DS 2018) with DySan's networks
    and losses. The predictor and the discriminators train on raw windows for the first
    ``pretraining`` rounds. They are then frozen, without dropout, and the sanitizer
    trains against them. The loss has no distortion term.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``DySanGenConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a window is too short.

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
    """Builds MSDA with DySan's networks for windows of ``spec``.

    Implements the idea of MSDA (Malekzadeh et al., IoTDI 2019) with DySan's networks
    and losses: discriminators alternate with an autoencoder whose loss includes
    distortion. It is the model of DySan's grid with ``alpha`` 0.6 and ``lambda_`` 0.3,
    and all wearers share it. ``msda`` implements the original networks and losses.

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
    """Builds Olympus with DySan's networks for windows of ``spec``.

    Implements the idea of Olympus (Raval et al., PoPETs 2019) with DySan's networks and
    losses: an obfuscator alternates with separate classifiers of the public and the
    private attributes. The loss has no distortion term. The authors' program for
    Olympus is not available.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``OlympusConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range, or a window is too short.

    Example:
      >>> from jaxanon.datasets import load
      >>> olympus(load("smartwatch").spec).config.lambda_
      0.4

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 4.2.
    """
    return sanitizer("olympus", spec, config, distortion=False)
