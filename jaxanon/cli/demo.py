"""``jaxanon demo``: from nothing to a report, in minutes."""

import dataclasses
import pathlib

from jaxanon.cli import console, evaluate, train
from jaxanon.cli.data import DataOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo trains; chosen to end in 3 to 7 minutes on 2 cores."""

    epochs: int = 30
    settings: dict = dataclasses.field(
        default_factory=lambda: {
            "hidden_sizes": (512, 256, 128),
            "samples_per_class": 100,
            "ema_decay": 0.99,
            "anonymization": "stochastic",
        }
    )
    """Blinder's, where they are not the defaults"""


def demo(
    *, output_dir: pathlib.Path = pathlib.Path("jaxanon-demo"), seed: int = 0
) -> None:
    """Trains Blinder to hide which arm wears a smartwatch, attacks it, reports.

    Real recordings of 10 people doing 7 shoulder exercises; 3 to 7 minutes on 2 quiet
    cores, without a network. Interrupted, it goes on when it is started again.

    Args:
      output_dir: folder for the run and its report
      seed: of everything random
    """
    from jaxanon.methods import BlinderConfig

    chosen = DemoSettings()
    settings = BlinderConfig(**chosen.settings)
    options = DataOptions(dataset="smartwatch", public="exercise", private="side")
    console.say("Smartwatch windows: keep the exercise, hide the side it is done on.")
    train.train_run(
        "blinder", options, settings, chosen.epochs, seed, output_dir, resume=True
    )
    evaluate.evaluate(output_dir, seed=seed, overwrite=True)
