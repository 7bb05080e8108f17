"""RAE + AAE: sensitive classes replaced first, then private attributes confused."""

import dataclasses

import jax
import jax.numpy as jnp

from jaxanon.kernels.setting_checks import at_least, configured
from jaxanon.methods import anonymizers, replacing
from jaxanon.methods.aae import AAEConfig, networks, players
from jaxanon.methods.anonymizer_config import hyper
from jaxanon.methods.central import central
from jaxanon.methods.epochs import by_epoch, during
from jaxanon.methods.method import Method


@dataclasses.dataclass(frozen=True, kw_only=True)
class RAEAAEConfig(AAEConfig, replacing.ReplacementConfig):
    """Settings of both; ``batch`` is one for all."""

    replacing: int = 5
    """epochs in which the replacement autoencoder learns, before all others begin"""

    def __post_init__(self):
        AAEConfig.__post_init__(self)
        replacing.ReplacementConfig.__post_init__(self)
        at_least(1, replacing=self.replacing)


def rae_aae(spec, **settings) -> Method:
    """Builds RAE + AAE, one autoencoder behind the other, for windows of ``spec``.

    First ``rae``'s autoencoder learns to make neutral windows of the sensitive
    (``black``) public classes; then ``aae``'s readers learn from what comes out of it,
    and last its autoencoder to rewrite that. The public attribute's reader tells the
    white classes alone, and windows of others do not count for it: of MotionSense's
    five there are three. At run time windows go through both.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      **settings: fields of ``RAEAAEConfig``.

    Returns:
      ``Method``.

    Raises:
      ValueError: as ``rae``, and if fewer than two classes are white.
      TypeError: for an unknown setting.

    Example:
      >>> from jaxanon.datasets import load
      >>> spec = load("smartwatch").spec
      >>> first, second = spec.classes[spec.public][:2]
      >>> rae_aae(spec, black=(first,), gray=(second,)).config.replacing
      5

    References:
      Malekzadeh, Clegg, Cavallaro, Haddadi, Mobile Sensor Data Anonymization, IoTDI
      2019, section 5; the released program's version for gender.
    """
    config = configured(RAEAAEConfig, settings)
    config, classes = replacing.with_classes("rae_aae", config, spec)
    white = classes.white
    if len(white) < 2:
        raise ValueError(
            f"rae_aae must leave two classes of {spec.public!r} at least, neither "
            f"black nor gray, that a reader can tell apart; black={config.black!r} and "
            f"gray={config.gray!r} leave {len(white)}."
        )
    private = {name: spec.num_classes(name) for name in spec.private}
    nets = networks(spec, config, {spec.public: len(white)} | private)
    replacement = replacing.replacement(spec, config)
    number = [white.index(c) if c in white else 0 for c in range(len(_names(spec)))]

    def init_fn(key):
        keys = jax.random.split(key)
        first, second = replacement.init(keys[0]), nets.init(keys[1])
        averages = first["averages"] | second["averages"]
        return first | second | {"averages": averages}

    room = replacing.room(spec, config, classes, kept=white)

    def draw_fn(key, data, copy):
        batch = room.draw_fn(key, data, copy)
        public = jnp.asarray(number)[batch.labels[spec.public]]  # Among the white.
        return batch._replace(labels=batch.labels | {spec.public: public})

    replaced = lambda params, windows: replacement.rewrite(params, windows)[0]
    rewritten = anonymizers.anonymize_fn(nets)

    def make(rounds):
        first = replacing.replacing(replacement, during(rounds, 0, config.replacing))
        rest = players(nets, spec, config, rounds, config.replacing, replaced)
        return central(
            "rae_aae",
            config,
            spec,
            room._replace(draw_fn=draw_fn),
            init_fn=init_fn,
            players=(first, *rest),
            hyper=hyper(config, *replacing.HYPER),
            anonymize_fn=lambda key, params, windows: rewritten(
                key, params, replaced(params, windows)
            ),
        )

    before = config.replacing + config.pretraining
    return by_epoch(make)._replace(
        least_epochs=before + 1, phases=("replacing", "pretraining")
    )


def _names(spec):
    return spec.classes[spec.public]
