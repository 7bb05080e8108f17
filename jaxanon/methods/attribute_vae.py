"""Variational autoencoders of one public class each, moved between class means."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import configured, finite
from jaxanon.methods.autoencoder_config import AutoencoderConfig, sized
from jaxanon.methods.autoencoders import (
    Design,
    autoencoders,
    model_player,
    networks,
)
from jaxanon.methods.method import Method
from jaxanon.models.rewriter_losses import FORMS

MEANS = ("predicted", "last")

# The released program for MotionSense has a second layer of 512, and no classification
# layer; with 0.6 million weights a model is as large as the paper says without it.
PUBLISHED = {
    "motion_sense": (10, (512, 256, 128)),
    "mobi_act": (5, (512, 512, 256, 128)),
    "": (10, (512, 512, 256, 128)),
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class AttributeVAEConfig(AutoencoderConfig):
    """Settings of the attribute-specific autoencoders; the paper's for MotionSense."""

    alpha: float = 150.0
    """weight of the classification layer's loss: the paper's 2, for a loss 75 times
    smaller as the released programs have it (MobiAct's weight: 75); released: 0"""
    beta: float = 2.0
    """weight of the KL divergence; paper: MobiAct 5; released: MotionSense 0.1,
    MobiAct 0.5"""
    form: str = "plain"
    """loss in nats per window, or as scaled by the released programs"""
    means_of: str = "predicted"
    """whose class means a latent moves between: its predicted public class's; last, by
    a slip of the released program for MotionSense: the last one's, whatever it is"""

    def __post_init__(self):
        super().__post_init__()
        one_of("means_of", self.means_of, MEANS)
        finite(zero=True, alpha=self.alpha, beta=self.beta)
        one_of("form", self.form, FORMS)


def attribute_vae(spec, **settings) -> Method:
    """Builds attribute-specific autoencoders for windows of ``spec``.

    For each public class there is a variational autoencoder, with a classification
    layer for each private attribute that is learned together with it, so that private
    classes lie apart in the latent. A window is anonymized by moving a sample of its
    latent from the mean of its predicted private class to the mean of another, or any.

    The classification layer makes the latent say *more* of the private class: only the
    windows that are decoded from it may leave a device.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AttributeVAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> method = attribute_vae(load("smartwatch").spec, alpha=1.0)
      >>> method.name, method.config.hidden
      ('attribute_vae', (512, 512, 256, 128))

    References:
      Hajihassani, Ardakanian, Khazaei, Anonymizing Sensor Data on the Edge: A
      Representation Learning and Transformation Approach, 2021, eq. 2, sections 5.1
      to 5.3 and Algorithm 1.
    """
    config = sized(configured(AttributeVAEConfig, settings), spec, PUBLISHED)
    nets = networks(spec, config, reader_hidden=())
    weights = lambda hyper: (hyper["beta"], hyper["alpha"])
    groups = ("encoder", "decoder", "readers")
    design = Design(
        nets,
        (model_player(nets, groups, weights, config.form),),
        {"alpha": config.alpha, "beta": config.beta},
        last_means=config.means_of == "last",
    )
    return autoencoders("attribute_vae", spec, config, design)
