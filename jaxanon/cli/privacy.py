"""``jaxanon privacy``: the epsilon of noise, the noise of an epsilon, and ledgers."""

import pathlib
import warnings
from typing import Annotated

import tyro

from jaxanon.cli import arguments, console

Floats = Annotated[tuple[float, ...] | None, arguments.optional("FLOAT ...")]

Run = Annotated[tyro.conf.Positional[pathlib.Path | None], arguments.optional("[DIR]")]

DELTA = 1e-5

BOUND = " (an upper bound by Rényi divergences until the run ends)"


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
    json: bool = False,
) -> None:
    """Computes the epsilon of noise or the noise of an epsilon, without training.

    With a run folder, shows the epsilon that the run has spent. With a learner (atlas,
    dp_fedavg, fedsgd_ldp, ldp_fl), uses its settings: see `jaxanon privacy atlas
    --help`. Otherwise, assumes Gaussian noise on a clipped sum over a Poisson sample of
    examples in each local step of each round. Neighboring data sets differ by one
    example, or by one client if clients are clipped.

    Args:
      folder: folder of a run with noise in training, such as atlas
      noise_multiplier: standard deviation of the noise over the clip norm; one number,
        or one per layer if layers are clipped separately
      epsilon: target epsilon, to compute the noise
      delta: delta of the guarantee, well below 1 / num_examples
      rounds: number of federated rounds
      local_steps: noisy steps of a client per round
      sampling_probability: probability of an example per sample; default: batch_size /
        num_examples, or 1
      num_examples: examples of a client, or number of clients
      batch_size: expected examples per sample
      scores: importance of each layer in (0, 1], for Atlas: compares the published
        accounting with the correct one
      json: print JSON on stdout, and messages on stderr
    """
    from jaxanon import privacy as accounting
    from jaxanon.kernels.bounds import finite

    if folder is not None:
        options = (noise_multiplier, epsilon, scores)
        options += (sampling_probability, num_examples, batch_size)
        counted = (delta, rounds, local_steps) != (DELTA, 1, 1)
        if counted or any(option is not None for option in options):
            raise ValueError(
                f"{folder} records the privacy of its run; leave the options out."
            )
        with console.json_only(json):
            result = _recorded(folder)
        if json:
            console.print_json(result)
        return
    if (noise_multiplier is None) == (epsilon is None):
        raise ValueError(
            "pass a run folder, or --noise-multiplier to compute its epsilon, or "
            "--epsilon to compute its noise."
        )
    if scores is not None and noise_multiplier is None:
        raise ValueError("--scores requires --noise-multiplier; pass one per layer.")
    _at_least_one("--rounds", rounds)
    _at_least_one("--local-steps", local_steps)
    if epsilon is not None:
        finite(zero=False, epsilon=epsilon)
    for each in noise_multiplier or ():
        finite(zero=False, noise_multiplier=each)
    probability = _probability(sampling_probability, num_examples, batch_size)
    with console.json_only(json):
        with console.warnings_as_lines():
            if num_examples is not None:
                accounting.warn_of_delta(delta, num_examples)
            if epsilon is not None:
                accounting.warn_of_epsilon(epsilon)
        steps = rounds * local_steps
        shared = {"sampling_probability": probability, "steps": steps}
        console.say(
            f"Noisy sums: {steps}, each over a fraction {probability:.4g} of the "
            f"examples. Delta {delta:g}; neighboring data sets differ by one example."
        )
        if epsilon is not None:
            result = _needed(epsilon, delta, shared)
        else:
            result = _spent(noise_multiplier, scores, delta, shared)
        result = {"delta": delta, **shared, **result}
    if json:
        console.print_json(result)


def _recorded(folder) -> dict:
    """Prints and returns the ledger of a run."""
    from jaxanon.privacy import ledger
    from jaxanon.report.text import guaranteed
    from jaxanon.training import run_folder

    trained = (folder / "config.json").is_file()
    if trained and not (folder / ledger.FILE).is_file():
        if run_folder.read_config(folder)["method"] == "deeprotect":
            raise ValueError(
                "deeprotect trains without noise and spends its epsilon on each "
                "released window; `jaxanon anonymize --budget FILE` counts it, and "
                "`jaxanon budget-curve` measures its effect."
            )
    report = ledger.read(folder)
    rounds = report.get("rounds", {"done": 0, "asked": 0})
    bound = BOUND if report.get("accountant") == "rdp" else ""
    if "begun" in rounds:
        console.say(
            f"{rounds['done']} of {rounds['asked']} rounds are done. The server "
            f"started {rounds['begun']} rounds, including lost and repeated ones. The "
            f"guarantee covers all messages that clients may have sent{bound}."
        )
    elif rounds["done"] < rounds["asked"]:
        console.say(
            f"Unfinished: {rounds['done']} of {rounds['asked']} rounds. The guarantee "
            f"covers these rounds{bound}."
        )
    for sentence in guaranteed(report):
        console.say(sentence)
    return report


def _needed(epsilon, delta, shared) -> dict:
    """Prints and returns the noise multiplier of an epsilon, by accountant."""
    from jaxanon.privacy import ACCOUNTANTS, noise_multiplier_for

    table = console.table_of(
        f"Noise for epsilon {epsilon:g}", "accountant", "noise multiplier"
    )
    result = {
        name: noise_multiplier_for(epsilon, delta, accountant=name, **shared)
        for name in ACCOUNTANTS
    }
    for accountant, multiplier in result.items():
        table.add_row(accountant, f"{multiplier:.4g}")
    console.table(table)
    return {"epsilon": epsilon, "noise_multiplier": result}


def _spent(multipliers, scores, delta, shared) -> dict:
    """Prints and returns epsilons by accountant, and warns of a large one."""
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
        return {"noise_multiplier": joint, "epsilon": epsilons}
    columns = ("interpretation", "noise multiplier", "epsilon (pld)", "epsilon (rdp)")
    table = console.table_of("Interpretations of Atlas's equations", *columns)
    interpretations = {}
    for reading in READINGS:
        joint = noise_multiplier_of_layers(multipliers, scores, reading=reading)
        epsilons = _epsilons(joint, delta, shared)
        interpretations[reading] = {"noise_multiplier": joint, "epsilon": epsilons}
        shown = [f"{epsilon:.4g}" for epsilon in epsilons.values()]
        table.add_row(reading, f"{joint:.4f}", *shown)
    console.table(table)
    console.say(
        "A: scores multiply the sum and the noise. B: scores multiply only the sum. C: "
        "scores multiply only the noise, as in the text. claimed: equation 3.9."
    )
    console.say(
        "These numbers assume public scores. Scores learned from private data require "
        "a separate budget."
    )
    return {"interpretations": interpretations}


def _epsilons(joint, delta, shared):
    from jaxanon.privacy import ACCOUNTANTS, SampledGaussian, epsilon_spent

    each = [SampledGaussian(noise_multiplier=joint, **shared)]
    return {name: epsilon_spent(each, delta, accountant=name) for name in ACCOUNTANTS}


def _probability(given, num_examples, batch_size):
    if given is not None:
        if batch_size is not None:
            raise ValueError(
                "--sampling-probability and --batch-size exclude each other; omit one."
            )
        return given
    if batch_size is None:
        return 1.0
    if num_examples is None:
        raise ValueError("--batch-size requires --num-examples; pass both.")
    if not 1 <= batch_size <= num_examples:
        raise ValueError(
            f"--batch-size must be between 1 and {num_examples}, got {batch_size}."
        )
    return batch_size / num_examples


def _at_least_one(name, value):
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value}.")


def named(word: str) -> bool:
    """Returns whether a word is the name of a learner and not of a run folder.

    Raises:
      ValueError: if it is both.
    """
    from jaxanon.core import registry
    from jaxanon.privacy import ledger

    known = registry.names("learner")
    if word in known and (pathlib.Path(word) / ledger.FILE).exists():
        raise ValueError(
            f"{word} is both a learner and a run folder; write ./{word} for the "
            "folder, or change the working folder for the learner."
        )
    return word in known


def noisy() -> tuple[str, ...]:
    """Returns the learners with a privacy budget."""
    from jaxanon.core import registry
    from jaxanon.learners.private import BudgetConfig

    names = registry.names("learner")
    classes = {name: registry.entry(name).config or object for name in names}
    return tuple(n for n, each in classes.items() if issubclass(each, BudgetConfig))


def command(learner: str):
    """Returns the function of ``jaxanon privacy LEARNER``."""
    from jaxanon import learners
    from jaxanon.privacy import warn_of_epsilon

    if learner not in noisy():
        raise ValueError(
            f"learner must be one of {', '.join(noisy())}, got {learner!r}, which "
            "trains without noise."
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
        json: bool = False,
        settings: Annotated[settings_class, tyro.conf.arg(name="")],  # pyrefly: ignore
    ) -> None:
        """Computes the noise of a learner's epsilon, or the epsilon of its noise.

        The settings are those of `jaxanon train LEARNER`. The command does not train.

        Args:
          learner: atlas, dp_fedavg, fedsgd_ldp or ldp_fl
          clients: number of clients; required for dp_fedavg
          weights: number of weights of a model; required for ldp_fl
          noise_multiplier: noise multiplier, instead of --epsilon
          score_multiplier: noise multiplier of scores (atlas --scores released)
          weight_epsilon: epsilon of each weight (ldp_fl)
          json: print JSON on stdout, and messages on stderr
        """
        given = {
            "noise_multiplier": noise_multiplier,
            "score_multiplier": score_multiplier,
            "weight_epsilon": weight_epsilon,
        }
        given = {name: value for name, value in given.items() if value is not None}
        with console.json_only(json), console.warnings_as_lines():
            with warnings.catch_warnings():
                if given:  # The epsilon of the settings does not matter.
                    warnings.filterwarnings("ignore", "epsilon ")
                guarantee = guarantee_of(learner, settings, clients, weights)
            if given:
                guarantee = _with(guarantee, learner, given)
                warn_of_epsilon(guarantee.epsilon(guarantee.rounds))
        with console.json_only(json):
            show(learner, settings, guarantee)
        if json:
            console.print_json(guarantee.report(guarantee.rounds))

    return privacy


def guarantee_of(learner: str, config, clients: int | None, weights: int | None):
    """Returns the guarantee of a config.

    Args:
      learner: one of ``noisy``.
      config: settings of the learner.
      clients: number of clients, or None.
      weights: number of weights of a model, or None.

    Raises:
      ValueError: for an epsilon of 0, or a missing number.

    Example:
      >>> from jaxanon.learners.atlas import AtlasConfig
      >>> config = AtlasConfig(privacy_unit="client", epsilon=4.0, max_rounds=2)
      >>> round(guarantee_of("atlas", config, 100, None).noise_multiplier, 1)
      3.1
    """
    from jaxanon.learners import atlas
    from jaxanon.privacy import guarantee

    if config.epsilon == 0:
        raise ValueError("epsilon must be > 0, got 0; 0 means no noise and no budget.")
    for name, value in (("clients", clients), ("weights", weights)):
        if value is not None and value < 1:
            raise ValueError(f"--{name} must be >= 1, got {value}.")
    if learner == "dp_fedavg" and clients is None:
        raise ValueError("dp_fedavg requires the number of clients; pass --clients.")
    count = (
        1 if clients is None else clients
    )  # With one client every delta is small enough.
    if learner == "atlas":
        return atlas.of_atlas(config, count)
    if learner == "dp_fedavg":
        return guarantee.of_clients(config, count)
    if learner == "ldp_fl":
        if weights is None:
            raise ValueError("ldp_fl requires the number of weights; pass --weights.")
        return guarantee.of_weights(config, weights, count)
    return guarantee.of_steps(config)


def _with(guarantee, learner, given):
    """Returns the guarantee with the given noise."""
    from jaxanon.kernels.bounds import finite

    for name, value in given.items():
        if guarantee._asdict().get(name) is None:
            raise ValueError(
                f"{learner} has no {name} with these settings; omit "
                f"--{name.replace('_', '-')}."
            )
        finite(zero=False, **{name: value})
    both = {"noise_multiplier", "score_multiplier"}
    if guarantee.score_multiplier is not None and set(given) != both:
        raise ValueError(
            "released scores have separate noise; pass both --noise-multiplier and "
            "--score-multiplier."
        )
    return guarantee._replace(**given)


def show(learner: str, config, guarantee) -> None:
    """Prints the noise and the epsilon of a guarantee.

    Args:
      learner: one of ``noisy``.
      config: settings of the learner.
      guarantee: result of ``guarantee_of``.
    """
    from jaxanon.report.text import guaranteed

    table = console.table_of("Noise in clip norms", "quantity", "noise multiplier")
    if learner == "ldp_fl":
        table = console.table_of("Randomized responses", "quantity", "epsilon")
        table.add_row("each weight in each round", f"{guarantee.weight_epsilon:.4g}")
    else:
        table.add_row("all releases of a step", f"{guarantee.noise_multiplier:.4g}")
    if guarantee.score_multiplier is not None:
        table.add_row("scores, once per round", f"{guarantee.score_multiplier:.4g}")
    if learner == "dp_fedavg":
        _counts(table, config, guarantee)
    console.table(table)
    for sentence in guaranteed(guarantee.report(guarantee.rounds)):
        console.say(sentence)


def _counts(table, config, guarantee):
    from jaxanon import kernels
    from jaxanon.learners.private import count_stddev

    stddev = count_stddev(config, guarantee.noise_multiplier)
    remaining = kernels.noise_multiplier_with_counts(guarantee.noise_multiplier, stddev)
    table.add_row("of these, sums of updates", f"{float(remaining):.4g}")
    table.add_row("of these, counts (in clients)", f"{stddev:.4g}")
