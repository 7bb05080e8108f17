"""``jaxanon demo``: from nothing to a report, in minutes."""

import pathlib

from jaxanon.cli import console, evaluate, train
from jaxanon.cli.data import DataOptions


def demo(
    *, output_dir: pathlib.Path = pathlib.Path("jaxanon-demo"), seed: int = 0
) -> None:
    """Trains Blinder to hide which arm wears a smartwatch, attacks it, reports.

    Real recordings of 10 people doing 7 shoulder exercises, and Blinder's recommended
    recipe; 2 to 4 minutes on 2 quiet cores, without a network. If it is interrupted, it
    continues when it is started again.

    Args:
      output_dir: folder for the run and its report
      seed: of everything random
    """
    from jaxanon.core import registry

    settings = registry.settings_of("blinder")
    epochs = registry.default_epochs("blinder")
    options = DataOptions(dataset="smartwatch", public="exercise", private=("side",))
    console.say("Smartwatch windows: keep the exercise, hide the side it is done on.")
    train.train_run("blinder", options, settings, epochs, seed, output_dir, resume=True)
    evaluate.evaluate(output_dir, seed=seed, overwrite=True)
