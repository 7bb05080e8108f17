"""``jaxanon demo``: a trained, attacked and reported run within minutes."""

import pathlib

from jaxanon.cli import console, evaluate, train
from jaxanon.cli.data import DataOptions


def demo(
    *, output_dir: pathlib.Path = pathlib.Path("jaxanon-demo"), seed: int = 0
) -> None:
    """Trains Blinder to hide which arm wears a smartwatch, and attacks it.

    The data are recordings of 10 people doing 7 shoulder exercises. Blinder has its
    recommended recipe. The demo takes 2 to 4 minutes on 2 idle cores and needs no
    network. After an interrupt, the same command continues.

    Args:
      output_dir: folder for the run and its report
      seed: random seed
    """
    from jaxanon.core import registry

    settings = registry.settings_of("blinder")
    epochs = registry.default_epochs("blinder")
    options = DataOptions(dataset="smartwatch", public="exercise", private=("side",))
    console.say("Smartwatch windows: preserves the exercise and hides the side.")
    more = {"epochs": epochs, "seed": seed, "output_dir": output_dir}
    train.train_run("blinder", options, settings, resume=True, **more)
    evaluate.evaluate(output_dir, seed=seed, overwrite=True)
