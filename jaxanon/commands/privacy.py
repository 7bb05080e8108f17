"""``jaxanon privacy``: what noise costs, and what a budget needs, without training."""

import pathlib
from typing import Annotated

import tyro

from jaxanon.commands import arguments, show

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
    records: arguments.Whole = None,
    batch: arguments.Whole = None,
    scores: Floats = None,
) -> None:
    """Says which epsilon noise spends, or which noise an epsilon needs.

    Of a run, given its folder, what it has spent; of a learner, given its name (atlas,
    dpfedavg, fedsgd_ldp, ldpfl), what its settings need and spend: see `jaxanon privacy
    atlas --help`. Else, without training, of Gaussian noise on clipped sums over random
    samples of records (Poisson sampling), one sum at each local step of each round.
    Neighbours are data sets of which one has a record more: an example where examples
    are clipped, a client where clients are.

    Args:
      folder: a run with noise in its training, such as atlas
      noise_multiplier: standard deviation of the noise over the clip norm; one number,
        or one for each layer that is clipped by itself
      epsilon: a budget, in place of the noise: says what noise it needs
      delta: of the guarantee, well below 1 / records
      rounds: of federated learning
      local_steps: noisy steps of a client in each of them
      sampling_probability: of a record, in each sample; default: batch / records, or 1
      records: of a client, or clients of all, where each is a record
      batch: records of a sample on average
      scores: importance of each layer in (0, 1], as Atlas scales noise by it: shows
        what its published accounting claims and what holds
    """
    from jaxanon import privacy as accounting
    from jaxanon.kernels.setting_checks import finite

    if folder is not None:
        options = (noise_multiplier, epsilon, scores)
        options += (sampling_probability, records, batch)
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
    probability = _probability(sampling_probability, records, batch)
    with show.warnings_as_lines():
        if records is not None:
            accounting.warn_of_delta(delta, records)
        if epsilon is not None:
            accounting.warn_of_epsilon(epsilon)
    shared = {
        "sampling_probability": probability,
        "steps": rounds * local_steps,
    }
    show.say(
        f"Noisy sums: {shared['steps']}, each of a sample of {probability:.4g} of the "
        f"records. Delta {delta:g}; neighbours have one record more."
    )
    if epsilon is not None:
        _needed(epsilon, delta, shared)
    else:
        _spent(noise_multiplier, scores, delta, shared)


def _told(folder):
    from jaxanon import checkpoint, ledger
    from jaxanon.report.learned import guaranteed

    trained = (folder / "config.json").is_file()
    if trained and not (folder / ledger.FILE).is_file():
        if checkpoint.read_config(folder)["method"] == "deeprotect":
            raise ValueError(
                "deeprotect trains without noise, and spends its epsilon on every "
                "window that is released: `jaxanon anonymize --budget FILE` counts "
                "that, and `jaxanon evaluate --epsilons` says what it is worth."
            )
    told = ledger.read(folder)
    rounds = told.get("rounds", {"done": 0, "asked": 0})
    bound = BOUND if told.get("accountant") == "rdp" else ""
    if "begun" in rounds:
        show.say(
            f"Of {rounds['asked']} rounds {rounds['done']} are done. Clients were "
            f"asked for {rounds['begun']}, perhaps in vain or for one again; what "
            f"follows is of all that they may have sent{bound}."
        )
    elif rounds["done"] < rounds["asked"]:
        show.say(
            f"Unfinished: {rounds['done']} of {rounds['asked']} rounds; what follows "
            f"is of those{bound}."
        )
    for sentence in guaranteed(told):
        show.say(sentence)


def _needed(epsilon, delta, shared):
    from jaxanon.privacy import ACCOUNTANTS, noise_multiplier_for

    table = show.table_of(
        f"Noise for epsilon {epsilon:g}", "accountant", "noise multiplier"
    )
    for accountant in ACCOUNTANTS:
        z = noise_multiplier_for(epsilon, delta, accountant=accountant, **shared)
        table.add_row(accountant, f"{z:.4g}")
    show.table(table)


def _spent(multipliers, scores, delta, shared):
    """Tables of ε; a warning of one that promises next to nothing."""
    from jaxanon.privacy import READINGS, effective_noise_multiplier, warn_of_epsilon

    if scores is None:
        joint = effective_noise_multiplier(multipliers)
        table = show.table_of(f"Noise multiplier {joint:.4g}", "accountant", "epsilon")
        epsilons = _epsilons(joint, delta, shared)
        for accountant, epsilon in epsilons.items():
            table.add_row(accountant, f"{epsilon:.4g}")
        show.table(table)
        with show.warnings_as_lines():
            warn_of_epsilon(min(epsilons.values()))
        return
    columns = ("reading", "noise multiplier", "epsilon (pld)", "epsilon (rdp)")
    table = show.table_of("Atlas, as its equations are read", *columns)
    for reading in READINGS:
        joint = effective_noise_multiplier(multipliers, scores, reading=reading)
        epsilons = _epsilons(joint, delta, shared).values()
        shown = [f"{epsilon:.4g}" for epsilon in epsilons]
        name = "claimed for all" if reading == "claimed" else reading
        table.add_row(name, f"{joint:.4f}", *shown)
    show.table(table)
    show.say(
        "A: scores multiply sum and noise; B: the sum alone; C: the noise alone, as "
        "the text says; claimed: equation 3.9, whatever is done."
    )
    show.say(
        "All of it takes the scores for public: those that are learned from private "
        "data tell of them, and cost a budget of their own."
    )


def _epsilons(joint, delta, shared):
    from jaxanon.privacy import ACCOUNTANTS, SampledGaussian, epsilon_spent

    each = [SampledGaussian(noise_multiplier=joint, **shared)]
    return {name: epsilon_spent(each, delta, accountant=name) for name in ACCOUNTANTS}


def _probability(given, records, batch):
    if given is not None:
        if batch is not None:
            raise ValueError(
                "--sampling-probability and --batch say the same thing; give one."
            )
        return given
    if batch is None:
        return 1.0
    if records is None:
        raise ValueError("--batch is a part of the --records; give them too.")
    if not 1 <= batch <= records:
        raise ValueError(
            f"--batch must be between 1 and the {records} records, got {batch}."
        )
    return batch / records


def _at_least_one(name, value):
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value}.")
