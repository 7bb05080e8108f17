"""``jaxanon demo``: from nothing to a report, in minutes."""

import dataclasses
import pathlib

from jaxanon.commands import evaluate, show, train
from jaxanon.commands.sources import DataOptions


@dataclasses.dataclass(frozen=True, kw_only=True)
class DemoSettings:
    """What the demo trains; chosen to end within 5 minutes on 2 cores."""

    epochs: int = 20
    latent: int = 25
    hidden: tuple[int, ...] = (256, 128)
    per_class: int = 64


def demo(*, out: pathlib.Path = pathlib.Path("jaxanon-demo"), seed: int = 0) -> None:
    """Trains Blinder to hide which arm wears a smartwatch, attacks it, reports.

    Real recordings of 10 people doing 7 shoulder exercises; under 5 minutes on 2 cores,
    without a network. Interrupted, it goes on when it is started again.

    Args:
      out: folder for the run and its report
      seed: of everything random
    """
    from jaxanon.methods import BlinderConfig

    fields = dataclasses.asdict(DemoSettings())
    epochs = DemoSettings().epochs
    settings = BlinderConfig(**{k: v for k, v in fields.items() if k != "epochs"})
    options = DataOptions(dataset="smartwatch", public="exercise", private="side")
    show.say("Smartwatch windows: keep the exercise, hide the side it is done on.")
    train.train_run("blinder", options, settings, epochs, seed, out, resume=True)
    evaluate.evaluate(out, seed=seed, overwrite=True)
