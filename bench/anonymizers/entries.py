"""Systems and data sets of the table of anonymizers."""

from typing import Any, NamedTuple

from blinder import command as blinder

PASSES = 47  # For ObscureNet's family; about 2,500 rounds at its number of windows.
RANDOM = {"random class": {}}
CLASSES = RANDOM | {"flip": {"anonymization": "deterministic"}}
HALF = {"flip of half": {"anonymization": "probabilistic"}}
AS_IT_IS: dict[str, dict] = {"": {}}
DEFAULTS: dict[str, Any] = {}
TENTHS = tuple(round(0.1 * n, 1) for n in range(1, 10))
MODELS = {"alpha": TENTHS, "lambda_": TENTHS}  # 36 of them satisfy alpha + lambda < 1.


class Entry(NamedTuple):
    """A system: its training settings and its variants of anonymization."""

    name: str  # name of its rows
    method: str
    epochs: int
    settings: dict[str, Any] = DEFAULTS
    variants: dict[str, dict] = AS_IT_IS  # settings that do not affect training
    once: bool = False  # Train only the first seed because it takes long.
    grid: dict[str, tuple] = DEFAULTS  # grid of models, selected per window
    attacks: tuple[str, ...] = ()  # attacks that apply only to its runs


class Case(NamedTuple):
    """A data set with its windows, its split and the systems to evaluate."""

    name: str
    load: dict[str, Any]  # arguments of jaxanon.load
    entries: tuple[str, ...]
    epochs: dict[str, int] = DEFAULTS  # epochs that differ from the entry's
    share: float = 0.2  # fraction of labels known to attackers of the first seed
    trained_on: str = ""  # case whose models are tested; empty: its own
    once: bool = False  # Evaluate only the first seed.


UNTOUCHED = Entry("raw windows", "", 0)
FEATURES = Entry("ORF", "orf", 1)
OBSCURENETS = (
    Entry("ObscureNet", "obscurenet", PASSES, variants=CLASSES | HALF),
    Entry("attribute-specific VAEs", "attribute_vae", PASSES, variants=CLASSES | HALF),
    Entry(
        "attribute-specific VAEs, no classification layer",
        "attribute_vae",
        PASSES,
        {"alpha": 0.0, "beta": 0.1, "variant": "official"},
        {"flip": {"anonymization": "deterministic"}},
    ),
    Entry("CVAE", "cvae", PASSES, variants=CLASSES),
    Entry("CAE", "cae", PASSES, variants=CLASSES),
    Entry("general VAE", "general_vae", 10, {"batch_size": 512}, CLASSES, once=True),
)
CONVOLUTIONS = (
    Entry("AAE", "aae", 12, once=True),
    Entry("MSDA", "msda", 5, once=True),
    Entry("RAE", "rae", 8, once=True),
    Entry("RAE + AAE", "rae_aae", 18, once=True),
)
GUARDIAN = Entry("GEN", "gen", 6, {"pretraining": 2})
FEDERATED = (
    Entry("Blinder, guided", "blinder", 10, blinder.VARIANTS["guided"]),
    Entry(
        "Blinder, guided, 22 epochs",
        "blinder",
        22,
        {**blinder.VARIANTS["guided"], "anonymization": "probabilistic"},
        HALF | {"flip of 52 %": {"flip_probability": 0.52}},
    ),
    Entry("Blinder", "blinder", 20, blinder.VARIANTS["paper"], attacks=("inversion",)),
    Entry(
        "Blinder, as released",
        "blinder",
        30,
        blinder.VARIANTS["paper"]
        | {"variant": "official", "initialization": "official", "fresh_batches": False},
    ),
    Entry(
        "Blinder, loss as released",
        "blinder",
        30,
        blinder.VARIANTS["paper"] | {"variant": "official", "fresh_batches": False},
    ),
    Entry("FedBlinder", "fed_blinder", 10, once=True, attacks=("inversion",)),
    Entry("KD-Blinder", "kd_blinder", 10, once=True, attacks=("inversion",)),
)
SANITIZERS = (
    Entry("DySan", "dysan", 60),
    Entry("GEN, as DySan has it", "dysan_gen", 60),
    Entry("Olympus, as DySan has it", "olympus", 60),
    Entry("MSDA, as DySan has it", "dysan_msda", 60),
    Entry(
        "DySan, chosen online",
        "dysan",
        10,
        once=True,
        grid=MODELS,
        attacks=("fingerprint",),
    ),
)
ENTRIES = {
    entry.name: entry
    for entry in (
        UNTOUCHED,
        *OBSCURENETS,
        *FEDERATED,
        *CONVOLUTIONS,
        *SANITIZERS,
        GUARDIAN,
        FEATURES,
    )
}
NAMES = tuple(ENTRIES)
# Systems evaluated only on the windows that they were published for.
RELEASED = ("Blinder, as released", "Blinder, loss as released")
ELSEWHERE = (
    *("GEN", *RELEASED),
    *(entry.name for entry in SANITIZERS if entry.name != "DySan"),
)
FAMILY = tuple(entry.name for entry in OBSCURENETS)
FEW = dict.fromkeys(FAMILY, 150)  # An epoch has 3 rounds: about 450 rounds.
CASES = (
    Case(
        "MotionSense",
        {"name_or_npz": "motion_sense", "preset": "mag5", "private": ["gender"]},
        tuple(name for name in NAMES if name not in ELSEWHERE),
        {"DySan": 10},  # As many rounds as on raw axes.
        share=0.05,
    ),
    Case(
        "MotionSense, four activities",
        {"name_or_npz": "motion_sense", "preset": "mag4", "private": ["gender"]},
        ("raw windows", "Blinder, guided", *RELEASED),
        share=0.05,
        once=True,
    ),
    Case(
        "MotionSense, raw axes",
        {"name_or_npz": "motion_sense", "preset": "raw6", "private": ["gender"]},
        ("raw windows", *(entry.name for entry in SANITIZERS), "ORF"),
        once=True,
    ),
    Case(
        "MotionSense, seconds of 12 channels",
        {"name_or_npz": "motion_sense", "preset": "gen12", "private": ["gender"]},
        ("raw windows", "GEN"),
        share=0.05,
        once=True,
    ),
    Case(
        "MotionSense, new people",
        {
            "name_or_npz": "motion_sense",
            "preset": "mag5",
            "private": ["gender"],
            "split": "subject",
        },
        (
            "raw windows",
            "ObscureNet",
            "attribute-specific VAEs",
            "CVAE",
            "Blinder, guided",
            "ORF",
        ),
        share=0.05,
    ),
    Case(
        "smartwatch",
        {"name_or_npz": "smartwatch", "private": ["side"]},
        (
            *("raw windows", "ObscureNet", "attribute-specific VAEs", "CVAE", "CAE"),
            *("Blinder, guided", "Blinder", "DySan", "AAE", "ORF"),
        ),
        FEW,
        once=True,
    ),
    Case(
        "UCI HAPT",
        {"name_or_npz": "uci_hapt", "private": ["subject"]},
        (
            *("raw windows", "ObscureNet", "CVAE", "CAE", "Blinder, guided"),
            *("DySan", "ORF"),
        ),
        FEW,
        once=True,
    ),
    Case(
        "UCI HAPT, by models of MotionSense",
        {"name_or_npz": "uci_hapt", "preset": "mag3", "private": ["subject"]},
        ("raw windows", "ObscureNet", "CVAE", "Blinder, guided", "AAE", "DySan"),
        trained_on="MotionSense",
        once=True,
    ),
)
SMOKE = (
    Case(
        "smartwatch",
        {"name_or_npz": "smartwatch", "preset": "acc10", "private": ["side"]},
        ("raw windows", "ORF"),
    ),
)
# Stages of the evaluation of every row, in order.
STAGES = {
    "seeds": ("mlp", "forest", "stream"),
    "attackers": ("cnn", "lstm", "boosting", "logistic", "tree", "svm", "intrusive"),
    "attacks": (
        *("mlp", "forest", "intrusive", "per_class", "pairs"),
        *("self-training", "released", "recordings"),
    ),
}
FURTHER = ("attackers", "attacks")  # Stages for the first seed and variant only.
STAGES_SMOKE = {
    "seeds": ("forest", "stream"),
    "attackers": ("tree",),
    "attacks": ("forest", "intrusive", "pairs"),
}


def passes(seeds, first=0, *, further):
    """Returns pairs ``(stage, seed)`` in the order of evaluation.

    Example:
      >>> passes(2, further=True)
      [('seeds', 0), ('attackers', 0), ('attacks', 0), ('seeds', 1)]
      >>> passes(2, 1, further=True)
      [('seeds', 1), ('seeds', 2)]
    """
    found = [("seeds", seed) for seed in range(first, first + seeds)]
    if further and not first:
        found[1:1] = [(stage, 0) for stage in FURTHER]
    return found
