"""AAE: MSDA's version for gender, whose readers learn first and once."""

import dataclasses

from jaxanon.kernels.setting_checks import at_least, configured
from jaxanon.methods import anonymizers, weighed
from jaxanon.methods.anonymizer_config import AnonymizerConfig, hyper
from jaxanon.methods.central import central
from jaxanon.methods.draws import attributes
from jaxanon.methods.epochs import by_epoch, during
from jaxanon.methods.method import Method
from jaxanon.models import anonymizing


@dataclasses.dataclass(frozen=True, kw_only=True)
class AAEConfig(AnonymizerConfig):
    """AAE's settings, of the version that hides gender."""

    pretraining: int = 5
    """epochs in which readers learn from raw windows; released: 50 at most"""
    frozen: bool = True
    """readers then rest; no: they learn on, from the autoencoder's windows"""

    def __post_init__(self):
        super().__post_init__()
        at_least(0, pretraining=self.pretraining)
        if self.frozen and not self.pretraining:
            raise ValueError(
                "pretraining must be >= 1 where readers are frozen, got 0: they would "
                "never learn; give it an epoch, or frozen=False."
            )


def aae(spec, **settings) -> Method:
    """Builds AAE, the anonymizing autoencoder of gender, for windows of ``spec``.

    The baseline of Hajihassani et al. and of Blinder. Readers of all attributes learn
    from raw windows; then they are frozen, and a convolutional autoencoder learns to
    please the reader of the public attribute, to leave those of private ones at even
    odds, and to change little: ``1 MSE + 1 binary cross-entropy against 0.5 + 2
    cross-entropy``. Nothing reads its latents. Frozen readers are fooled more easily
    than confused: with ``frozen=False`` they learn on, as ``msda``'s do.

    Differences from the released program: it rewrites windows as they are, not behind
    the replacement autoencoder (that is ``rae_aae``); batches are drawn with
    replacement; nothing stops early.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``AAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> aae(load("smartwatch").spec, utility=1.0).config.utility
      1.0

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the released program's version for gender; Yang and Ardakanian,
      Blinder, ACM TOSN 2023, section 7, baseline 1; Hajihassani, Ardakanian, Khazaei,
      Anonymizing Sensor Data on the Edge, 2021, sections 6.3 and 7.3.
    """
    config = configured(AAEConfig, settings)
    classes = {name: spec.num_classes(name) for name in attributes(spec)}
    nets = networks(spec, config, classes)

    def make(rounds):
        return central(
            "aae",
            config,
            spec,
            weighed.room(spec, config.batch),
            init_fn=nets.init,
            players=players(nets, spec, config, rounds),
            hyper=hyper(config),
            anonymize_fn=anonymizers.anonymize_fn(nets),
        )

    return by_epoch(make)._replace(
        least_epochs=config.pretraining + 1, phases=("pretraining",)
    )


def networks(spec, config, classes: dict[str, int]) -> anonymizing.Networks:
    """The gender version's networks, with readers of attributes of so many classes."""
    return anonymizing.Networks(
        spec.time,
        len(spec.channels),
        anonymizing.Encoder(config.filters),
        anonymizing.Decoder(spec.time, config.filters),
        {
            name: anonymizing.Reader(
                num, config.reader_filters, tuple(config.reader_hidden)
            )
            for name, num in classes.items()
        },
        {},
    )


def players(nets, spec, config, rounds: int, start: int = 0, source_fn=None) -> tuple:
    """Readers of raw windows, then autoencoder, and readers again unless frozen.

    Args:
      nets: ``Networks``.
      spec: ``jaxanon.datasets.Spec``.
      config: ``AAEConfig``.
      rounds: of an epoch.
      start: epoch in which the readers begin.
      source_fn: as in ``anonymizers.anonymizing``.
    """
    begin = start + config.pretraining
    early, late = during(rounds, start, begin), during(rounds, begin)
    found = (anonymizers.reading(nets, early, raw=True, source_fn=source_fn),)
    if not config.frozen:
        found += (anonymizers.reading(nets, late, source_fn=source_fn),)
    return (*found, anonymizers.anonymizing(nets, spec, late, source_fn=source_fn))
