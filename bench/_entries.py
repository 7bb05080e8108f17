"""What the table of anonymizers trains, and on what."""

from typing import Any, NamedTuple

import blinder

PASSES = 47  # Of ObscureNet's family, as many as its window counts make 2,500 rounds.
RANDOM = {"random class": {}}
CLASSES = RANDOM | {"flip": {"anonymization": "deterministic"}}
HALF = {"flip of half": {"anonymization": "probabilistic"}}
AS_IT_IS: dict[str, dict] = {"": {}}
DEFAULTS: dict[str, Any] = {}


class Entry(NamedTuple):
    """One system: how it is trained, and the ways in which it then anonymizes."""

    name: str  # of its rows
    method: str
    epochs: int
    settings: dict[str, Any] = DEFAULTS
    variants: dict[str, dict] = AS_IT_IS  # settings that training does not depend on
    seeds: int | None = None  # where it takes too long for as many as the others


class Case(NamedTuple):
    """One data set, cut and split in one way, and who is tried on it."""

    name: str
    load: dict[str, Any]  # arguments of jaxanon.load
    entries: tuple[str, ...]
    less: int = 1  # Every so many epochs of what an entry says; data sets differ.


UNTOUCHED = Entry("raw windows", "", 0)
FEATURES = Entry("ORF", "orf", 1)
OBSCURENETS = (
    Entry("ObscureNet", "obscurenet", PASSES, variants=CLASSES | HALF),
    Entry("attribute-specific VAEs", "attribute_vae", PASSES, variants=CLASSES),
    Entry(
        "attribute-specific VAEs, no classification layer",
        "attribute_vae",
        PASSES,
        {"alpha": 0.0, "beta": 0.1, "form": "released"},
        {"flip": {"anonymization": "deterministic"}},
    ),
    Entry("CVAE", "cvae", PASSES, variants=CLASSES),
    Entry("CAE", "cae", PASSES, variants=CLASSES),
    Entry("general VAE", "general_vae", 10, {"batch": 512}, CLASSES, seeds=1),
)
CONVOLUTIONS = (
    Entry("AAE", "aae", 12, seeds=1),
    Entry("MSDA", "msda", 5, seeds=1),
    Entry("RAE", "rae", 8, seeds=1),
    Entry("RAE + AAE", "rae_aae", 18, seeds=1),
)
GUARDIAN = Entry("GEN", "gen", 15)
FEDERATED = (
    Entry("Blinder, guided", "blinder", 10, blinder.VARIANTS["guided"]),
    Entry("Blinder", "blinder", 20),
    Entry("FedBlinder", "fed_blinder", 10),
    Entry("KD-Blinder", "kd_blinder", 10),
)
SANITIZERS = (
    Entry("DySan", "dysan", 60),
    Entry("GEN, as DySan has it", "dysan_gen", 60),
    Entry("Olympus, as DySan has it", "olympus", 60),
    Entry("MSDA, as DySan has it", "dysan_msda", 60),
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
CASES = (
    Case(
        "MotionSense",
        {"name_or_npz": "motion_sense", "preset": "mag5", "private": ["gender"]},
        tuple(name for name in NAMES if name != "GEN"),
    ),
    Case(
        "MotionSense, raw axes",
        {"name_or_npz": "motion_sense", "preset": "raw6", "private": ["gender"]},
        ("raw windows", *(entry.name for entry in SANITIZERS), "ORF"),
    ),
    Case(
        "MotionSense, seconds of 12 channels",
        {"name_or_npz": "motion_sense", "preset": "gen12", "private": ["gender"]},
        ("raw windows", "GEN"),
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
    ),
    Case(
        "smartwatch",
        {"name_or_npz": "smartwatch", "private": ["side"]},
        (
            *("raw windows", "ObscureNet", "attribute-specific VAEs", "CVAE", "CAE"),
            *("Blinder, guided", "Blinder", "DySan", "AAE", "ORF"),
        ),
    ),
    Case(
        "UCI HAPT",
        {"name_or_npz": "uci_hapt", "private": ["subject"]},
        (
            *("raw windows", "ObscureNet", "CVAE", "CAE", "Blinder, guided"),
            *("DySan", "ORF"),
        ),
    ),
)
SMOKE = (
    Case(
        "smartwatch",
        {"name_or_npz": "smartwatch", "private": ["side"]},
        ("raw windows", "ORF"),
    ),
)
