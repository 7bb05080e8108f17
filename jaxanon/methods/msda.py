"""MSDA: an autoencoder whose latents and windows readers are to be confused by."""

import dataclasses

from jaxanon.kernels.checks import one_of
from jaxanon.kernels.setting_checks import at_least, configured
from jaxanon.methods import anonymizers, weighed
from jaxanon.methods.anonymizer_config import AnonymizerConfig, hyper
from jaxanon.methods.central import central
from jaxanon.methods.draws import attributes
from jaxanon.methods.epochs import by_epoch, during
from jaxanon.methods.method import Method
from jaxanon.models import anonymizing
from jaxanon.models.confusion import CONFUSIONS


@dataclasses.dataclass(frozen=True, kw_only=True)
class MSDAConfig(AnonymizerConfig):
    """MSDA's settings, of the version that hides who somebody is."""

    distortion: float = 0.01
    """weight of the mean squared change of standardised windows"""
    filters: int = 100
    """filters of the autoencoder's convolutions"""
    latent_hidden: tuple[int, ...] = (128, 32)
    """widths of the dense layers of those that read latents"""
    reader_hidden: tuple[int, ...] = (256, 64)
    """widths of the dense layers of those that read windows"""
    form: str = "chance"
    """of confusion; released: least where the true class is excluded (models.confusion)
    """
    warm_up: int = 1
    """epochs in which the autoencoder learns to leave windows alone; released: 32"""
    turn: int = 0
    """epochs that readers, then autoencoder play in turn; 0: both in each round;
    released: 24, eight times over"""

    def __post_init__(self):
        super().__post_init__()
        at_least(1, latent_hidden=self.latent_hidden)
        at_least(0, warm_up=self.warm_up, turn=self.turn)
        one_of("form", self.form, CONFUSIONS)


def msda(spec, **settings) -> Method:
    """Builds MSDA, the anonymizing autoencoder of identity, for windows of ``spec``.

    A convolutional autoencoder of windows, first of magnitudes, learns to rebuild them;
    then readers of each private attribute learn from its latents (EncID) and from its
    windows (DecID), a reader of the public one from its windows (ActID), and the
    autoencoder to please the last, to confuse the others and to change little: section
    4's regularised loss, with the released weights ``0.01 MSE + EncID + DecID + 2
    ActID``. ``dysan_msda`` is the same idea by DySan's networks and losses; ``aae`` is
    the version that hides gender.

    Differences from the released program: batches are drawn with replacement; all play
    in every round (``turn``), and nothing stops early.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``MSDAConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: if a setting is out of range.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> msda(load("smartwatch").spec).config.distortion
      0.01

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 4; the released program.
    """
    config = configured(MSDAConfig, settings)
    nets = _networks(spec, config)

    def make(rounds):
        after = during(rounds, config.warm_up)

        def turns(second):
            if not config.turn:
                return after
            length, start = config.turn * rounds, config.warm_up * rounds
            own = lambda number: (number - start) // length % 2 == second
            return lambda number: after(number) & own(number)

        players = (
            anonymizers.rebuilder(nets, during(rounds, 0, config.warm_up)),
            anonymizers.reading(nets, turns(0)),
            anonymizers.anonymizing(nets, spec, turns(1), form=config.form),
        )
        return central(
            "msda",
            config,
            spec,
            weighed.room(spec, config.batch),
            init_fn=nets.init,
            players=players,
            hyper=hyper(config),
            anonymize_fn=anonymizers.anonymize_fn(nets),
        )

    begins = config.warm_up + config.turn  # The autoencoder's play against readers.
    return by_epoch(make)._replace(least_epochs=begins + 1, phases=("warm_up", "turn"))


def _networks(spec, config):
    size, reach = spec.num_classes, (1, 3)
    read = lambda name, hidden, pooled: anonymizing.Reader(
        size(name), config.reader_filters, tuple(hidden), pooled
    )
    return anonymizing.Networks(
        spec.time,
        len(spec.channels),
        anonymizing.Encoder(config.filters, reach, deeper=True),
        anonymizing.Decoder(spec.time, config.filters, reach, deeper=True),
        {
            name: read(name, config.reader_hidden, anonymizing.POOLED_OUTPUT)
            for name in attributes(spec)
        },
        {
            name: read(name, config.latent_hidden, anonymizing.POOLED_LATENT)
            for name in spec.private
        },
    )
