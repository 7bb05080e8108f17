"""``jaxanon privacy LEARNER``: what a learner's settings spend, without training."""

import pathlib
import warnings
from typing import Annotated

import tyro

from jaxanon.commands import arguments, show


def named(word: str) -> bool:
    """Whether a word is a learner's name, and not a folder's.

    Raises:
      ValueError: if it is both.
    """
    from jaxanon import learners, ledger

    if word in learners.NAMES and (pathlib.Path(word) / ledger.FILE).exists():
        raise ValueError(
            f"{word} is a learner and a run's folder; write ./{word} for the folder, "
            "or go elsewhere for the learner."
        )
    return word in learners.NAMES


def noisy() -> tuple[str, ...]:
    """Learners whose noise a budget buys."""
    from jaxanon import learners
    from jaxanon.learners.config import BudgetConfig

    classes = {name: learners.config_class(name) for name in learners.NAMES}
    return tuple(n for n, each in classes.items() if issubclass(each, BudgetConfig))


def command(learner: str):
    """The function behind ``jaxanon privacy LEARNER``, with the learner's settings."""
    from jaxanon import learners
    from jaxanon.privacy import warn_of_epsilon

    if learner not in noisy():
        raise ValueError(
            f"{learner} trains without noise, and spends no epsilon; it is spent by "
            f"{', '.join(noisy())}."
        )
    settings_class = learners.config_class(learner)

    def privacy(
        learner: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="LEARNER")],
        /,
        *,
        clients: arguments.Whole = None,
        weights: arguments.Whole = None,
        noise_multiplier: arguments.Real = None,
        score_multiplier: arguments.Real = None,
        weight_epsilon: arguments.Real = None,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Says which noise a learner's epsilon needs, or which epsilon noise spends.

        Settings are those of `jaxanon train LEARNER`; nothing is trained.

        Args:
          learner: atlas, dpfedavg, fedsgd_ldp or ldpfl
          clients: of the federation; dpfedavg needs to know
          weights: that a model has; ldpfl needs to know
          noise_multiplier: noise that there is, in place of what epsilon buys
          score_multiplier: likewise, that of scores (atlas --scores released)
          weight_epsilon: likewise, epsilon of each weight (ldpfl)
        """
        given = {
            "noise_multiplier": noise_multiplier,
            "score_multiplier": score_multiplier,
            "weight_epsilon": weight_epsilon,
        }
        given = {name: value for name, value in given.items() if value is not None}
        with show.warnings_as_lines():
            with warnings.catch_warnings():
                if given:  # The budget is not what is asked about.
                    warnings.filterwarnings("ignore", "epsilon ")
                found = guarantee_of(learner, settings, clients, weights)
            if given:
                found = _with(found, learner, given)
                warn_of_epsilon(found.epsilon(found.rounds))
        tell(learner, settings, found)

    return privacy


def guarantee_of(learner: str, config, clients: int | None, weights: int | None):
    """The guarantee that a config asks for.

    Args:
      learner: one of ``noisy``.
      config: its settings.
      clients: of the federation, or None.
      weights: of a model, or None.

    Raises:
      ValueError: for an epsilon of 0, and where a number is missing.

    Example:
      >>> from jaxanon.learners.config import AtlasConfig
      >>> config = AtlasConfig(guarantee="client", epsilon=4.0, rounds=2)
      >>> round(guarantee_of("atlas", config, 100, None).noise_multiplier, 1)
      3.1
    """
    from jaxanon.learners import atlas_guarantee, guarantee

    if config.epsilon == 0:
        raise ValueError("epsilon must be > 0: of 0 there is no noise, and no budget.")
    for name, value in (("clients", clients), ("weights", weights)):
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be >= 1, got {value}.")
    if learner == "dpfedavg" and clients is None:
        raise ValueError("dpfedavg hides a client among all; give how many: --clients.")
    count = 1 if clients is None else clients  # Of one no delta is too large.
    if learner == "atlas":
        return atlas_guarantee.of_atlas(config, count)
    if learner == "dpfedavg":
        return guarantee.of_clients(config, count)
    if learner == "ldpfl":
        if weights is None:
            raise ValueError("ldpfl sends every weight; give how many: --weights.")
        return guarantee.of_weights(config, weights, count)
    return guarantee.of_steps(config)


def _with(found, learner, given):
    """The guarantee of noise that was named."""
    from jaxanon.kernels.setting_checks import finite

    for name, value in given.items():
        if getattr(found, name, None) is None:
            raise ValueError(
                f"{learner} has no {name} with these settings; leave out "
                f"--{name.replace('_', '-')}."
            )
        finite(zero=False, **{name: value})
    both = {"noise_multiplier", "score_multiplier"}
    if getattr(found, "score_multiplier", None) is not None and set(given) != both:
        raise ValueError(
            "scores that are released have noise of their own; give both "
            "--noise-multiplier and --score-multiplier."
        )
    return found._replace(**given)


def tell(learner: str, config, found) -> None:
    """Prints what a guarantee's noise is, and what it spends.

    Args:
      learner: one of ``noisy``.
      config: its settings.
      found: of ``guarantee_of``.
    """
    from jaxanon.report.learned import guaranteed

    table = show.table_of("Noise, in clip norms", "of what", "noise multiplier")
    if learner == "ldpfl":
        table = show.table_of("Randomised responses", "of what", "epsilon")
        table.add_row("each weight in each round", f"{found.weight_epsilon:.4g}")
    else:
        table.add_row("all that a step releases", f"{found.noise_multiplier:.4g}")
    if getattr(found, "score_multiplier", None) is not None:
        table.add_row("scores, once a round", f"{found.score_multiplier:.4g}")
    if learner == "dpfedavg":
        _counts(table, config, found)
    show.table(table)
    for sentence in guaranteed(found.told(found.rounds)):
        show.say(sentence)


def _counts(table, config, found):
    from jaxanon import kernels
    from jaxanon.learners.private_builders import count_stddev

    stddev = count_stddev(config, found.noise_multiplier)
    left = kernels.noise_multiplier_beside_counts(found.noise_multiplier, stddev)
    table.add_row("of it, sums of moves", f"{float(left):.4g}")
    table.add_row("of it, counts (in clients)", f"{stddev:.4g}")
