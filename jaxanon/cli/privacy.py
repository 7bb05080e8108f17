"""``jaxanon privacy``: what noise costs, and what a budget needs, without training."""

import pathlib
import warnings
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console

Floats = Annotated[tuple[float, ...] | None, arguments.optional("FLOAT ...")]

Run = Annotated[tyro.conf.Positional[pathlib.Path | None], arguments.optional("[DIR]")]

DELTA = 1e-5

BOUND = ", and an upper bound: by Rényi divergences, until the run ends"


def privacy(
    folder: Run = None,
    /,
    *,
    noise_multiplier: Floats = None,
    epsilon: arguments.Real = None,
    delta: float = DELTA,
    rounds: int = 1,
    local_steps: int = 1,
    sampling_probability: arguments.Real = None,
    num_examples: arguments.Whole = None,
    batch_size: arguments.Whole = None,
    scores: Floats = None,
) -> None:
    """Says which epsilon noise spends, or which noise an epsilon needs.

    Of a run, given its folder, what it has spent; of a learner, given its name (atlas,
    dp_fedavg, fedsgd_ldp, ldp_fl), what its settings need and spend: see `jaxanon
    privacy atlas --help`. Else, without training, of Gaussian noise on clipped sums
    over random samples of records (Poisson sampling), one sum at each local step of
    each round. Neighbours are data sets of which one has a record more: an example
    where examples are clipped, a client where clients are.

    Args:
      folder: a run with noise in its training, such as atlas
      noise_multiplier: standard deviation of the noise over the clip norm; one number,
        or one for each layer that is clipped by itself
      epsilon: a budget, in place of the noise: says what noise it needs
      delta: of the guarantee, well below 1 / records
      rounds: of federated learning
      local_steps: noisy steps of a client in each of them
      sampling_probability: of a record, in each sample; default: batch_size /
        num_examples, or 1
      num_examples: of a client, or clients of all, where each is a record
      batch_size: records of a sample on average
      scores: importance of each layer in (0, 1], as Atlas scales noise by it: shows
        what its published accounting claims and what holds
    """
    from jaxanon import privacy as accounting
    from jaxanon.kernels.bounds import finite

    if folder is not None:
        options = (noise_multiplier, epsilon, scores)
        options += (sampling_probability, num_examples, batch_size)
        counted = (delta, rounds, local_steps) != (DELTA, 1, 1)
        if counted or any(option is not None for option in options):
            raise ValueError(f"what {folder} spent is in it; leave the options out.")
        _told(folder)
        return
    if (noise_multiplier is None) == (epsilon is None):
        raise ValueError(
            "give the folder of a run, or either --noise-multiplier, to learn which "
            "epsilon it spends, or --epsilon, to learn which noise it needs."
        )
    if scores is not None and noise_multiplier is None:
        raise ValueError("--scores are of layers; give their --noise-multiplier too.")
    _at_least_one("--rounds", rounds)
    _at_least_one("--local-steps", local_steps)
    if epsilon is not None:
        finite(zero=False, epsilon=epsilon)
    for each in noise_multiplier or ():
        finite(zero=False, noise_multiplier=each)
    probability = _probability(sampling_probability, num_examples, batch_size)
    with console.warnings_as_lines():
        if num_examples is not None:
            accounting.warn_of_delta(delta, num_examples)
        if epsilon is not None:
            accounting.warn_of_epsilon(epsilon)
    shared = {
        "sampling_probability": probability,
        "steps": rounds * local_steps,
    }
    console.say(
        f"Noisy sums: {shared['steps']}, each of a sample of {probability:.4g} of the "
        f"records. Delta {delta:g}; neighbours have one record more."
    )
    if epsilon is not None:
        _needed(epsilon, delta, shared)
    else:
        _spent(noise_multiplier, scores, delta, shared)


def _told(folder):
    from jaxanon.privacy import ledger
    from jaxanon.report.text import guaranteed
    from jaxanon.training import run_folder

    trained = (folder / "config.json").is_file()
    if trained and not (folder / ledger.FILE).is_file():
        if run_folder.read_config(folder)["method"] == "deeprotect":
            raise ValueError(
                "deeprotect trains without noise, and spends its epsilon on every "
                "window that is released: `jaxanon anonymize --budget FILE` counts "
                "that, and `jaxanon evaluate --epsilons` says what it is worth."
            )
    told = ledger.read(folder)
    rounds = told.get("rounds", {"done": 0, "asked": 0})
    bound = BOUND if told.get("accountant") == "rdp" else ""
    if "begun" in rounds:
        console.say(
            f"Of {rounds['asked']} rounds {rounds['done']} are done. Clients were "
            f"asked for {rounds['begun']}, perhaps in vain or for one again; what "
            f"follows is of all that they may have sent{bound}."
        )
    elif rounds["done"] < rounds["asked"]:
        console.say(
            f"Unfinished: {rounds['done']} of {rounds['asked']} rounds; what follows "
            f"is of those{bound}."
        )
    for sentence in guaranteed(told):
        console.say(sentence)


def _needed(epsilon, delta, shared):
    from jaxanon.privacy import ACCOUNTANTS, noise_multiplier_for

    table = console.table_of(
        f"Noise for epsilon {epsilon:g}", "accountant", "noise multiplier"
    )
    for accountant in ACCOUNTANTS:
        z = noise_multiplier_for(epsilon, delta, accountant=accountant, **shared)
        table.add_row(accountant, f"{z:.4g}")
    console.table(table)


def _spent(multipliers, scores, delta, shared):
    """Tables of ε; a warning of one that promises next to nothing."""
    from jaxanon.privacy import READINGS, noise_multiplier_of_layers, warn_of_epsilon

    if scores is None:
        joint = noise_multiplier_of_layers(multipliers)
        table = console.table_of(
            f"Noise multiplier {joint:.4g}", "accountant", "epsilon"
        )
        epsilons = _epsilons(joint, delta, shared)
        for accountant, epsilon in epsilons.items():
            table.add_row(accountant, f"{epsilon:.4g}")
        console.table(table)
        with console.warnings_as_lines():
            warn_of_epsilon(min(epsilons.values()))
        return
    columns = ("reading", "noise multiplier", "epsilon (pld)", "epsilon (rdp)")
    table = console.table_of("Atlas, as its equations are read", *columns)
    for reading in READINGS:
        joint = noise_multiplier_of_layers(multipliers, scores, reading=reading)
        epsilons = _epsilons(joint, delta, shared).values()
        shown = [f"{epsilon:.4g}" for epsilon in epsilons]
        name = "claimed for all" if reading == "claimed" else reading
        table.add_row(name, f"{joint:.4f}", *shown)
    console.table(table)
    console.say(
        "A: scores multiply sum and noise; B: the sum alone; C: the noise alone, as "
        "the text says; claimed: equation 3.9, whatever is done."
    )
    console.say(
        "All of it takes the scores for public: those that are learned from private "
        "data tell of them, and cost a budget of their own."
    )


def _epsilons(joint, delta, shared):
    from jaxanon.privacy import ACCOUNTANTS, SampledGaussian, epsilon_spent

    each = [SampledGaussian(noise_multiplier=joint, **shared)]
    return {name: epsilon_spent(each, delta, accountant=name) for name in ACCOUNTANTS}


def _probability(given, num_examples, batch_size):
    if given is not None:
        if batch_size is not None:
            raise ValueError(
                "--sampling-probability and --batch-size say the same thing; give one."
            )
        return given
    if batch_size is None:
        return 1.0
    if num_examples is None:
        raise ValueError("--batch-size needs --num-examples; give both.")
    if not 1 <= batch_size <= num_examples:
        raise ValueError(
            f"--batch-size must be between 1 and {num_examples}, got {batch_size}."
        )
    return batch_size / num_examples


def _at_least_one(name, value):
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value}.")


def named(word: str) -> bool:
    """Whether a word is a learner's name, and not a folder's.

    Raises:
      ValueError: if it is both.
    """
    from jaxanon.core import registry
    from jaxanon.privacy import ledger

    known = registry.names("learner")
    if word in known and (pathlib.Path(word) / ledger.FILE).exists():
        raise ValueError(
            f"{word} is a learner and a run's folder; write ./{word} for the folder, "
            "or go elsewhere for the learner."
        )
    return word in known


def noisy() -> tuple[str, ...]:
    """Learners whose noise a budget buys."""
    from jaxanon.core import registry
    from jaxanon.learners.private import BudgetConfig

    names = registry.names("learner")
    classes = {name: registry.entry(name).config or object for name in names}
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
          learner: atlas, dp_fedavg, fedsgd_ldp or ldp_fl
          clients: of the federation; dp_fedavg needs to know
          weights: that a model has; ldp_fl needs to know
          noise_multiplier: noise that there is, in place of what epsilon buys
          score_multiplier: likewise, that of scores (atlas --scores released)
          weight_epsilon: likewise, epsilon of each weight (ldp_fl)
        """
        given = {
            "noise_multiplier": noise_multiplier,
            "score_multiplier": score_multiplier,
            "weight_epsilon": weight_epsilon,
        }
        given = {name: value for name, value in given.items() if value is not None}
        with console.warnings_as_lines():
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
      >>> from jaxanon.learners.atlas import AtlasConfig
      >>> config = AtlasConfig(privacy_unit="client", epsilon=4.0, max_rounds=2)
      >>> round(guarantee_of("atlas", config, 100, None).noise_multiplier, 1)
      3.1
    """
    from jaxanon.learners import atlas
    from jaxanon.privacy import guarantee

    if config.epsilon == 0:
        raise ValueError("epsilon must be > 0: of 0 there is no noise, and no budget.")
    for name, value in (("clients", clients), ("weights", weights)):
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be >= 1, got {value}.")
    if learner == "dp_fedavg" and clients is None:
        raise ValueError(
            "dp_fedavg hides a client among all; give how many: --clients."
        )
    count = 1 if clients is None else clients  # Of one no delta is too large.
    if learner == "atlas":
        return atlas.of_atlas(config, count)
    if learner == "dp_fedavg":
        return guarantee.of_clients(config, count)
    if learner == "ldp_fl":
        if weights is None:
            raise ValueError("ldp_fl sends every weight; give how many: --weights.")
        return guarantee.of_weights(config, weights, count)
    return guarantee.of_steps(config)


def _with(found, learner, given):
    """The guarantee of noise that was named."""
    from jaxanon.kernels.bounds import finite

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
    from jaxanon.report.text import guaranteed

    table = console.table_of("Noise, in clip norms", "of what", "noise multiplier")
    if learner == "ldp_fl":
        table = console.table_of("Randomised responses", "of what", "epsilon")
        table.add_row("each weight in each round", f"{found.weight_epsilon:.4g}")
    else:
        table.add_row("all that a step releases", f"{found.noise_multiplier:.4g}")
    if getattr(found, "score_multiplier", None) is not None:
        table.add_row("scores, once a round", f"{found.score_multiplier:.4g}")
    if learner == "dp_fedavg":
        _counts(table, config, found)
    console.table(table)
    for sentence in guaranteed(found.report(found.rounds)):
        console.say(sentence)


def _counts(table, config, found):
    from jaxanon import kernels
    from jaxanon.learners.private import count_stddev

    stddev = count_stddev(config, found.noise_multiplier)
    left = kernels.noise_multiplier_with_counts(found.noise_multiplier, stddev)
    table.add_row("of it, sums of moves", f"{float(left):.4g}")
    table.add_row("of it, counts (in clients)", f"{stddev:.4g}")
