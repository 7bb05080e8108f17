"""Handmade reports whose names contain HTML, formulas and templates to escape."""

import sys

import numpy as np
import pytest

from jaxanon import metrics, report
from jaxanon.report.writer import Examples

# Markup, an unfinished formula, a template, and a path out of the folder.
BAD = "<i>&'\" $\\frac$ {{ 7 * 7 }} /../../up"
LABELS = [0, 0, 1, 1, 1, 1]
RIGHT, HALF, WRONG = LABELS, [0, 1, 0, 1, 0, 1], [1, 1, 0, 0, 0, 0]


def scores(guess, names):
    found = metrics.scores(LABELS, guess, names)
    middle = found["balanced_accuracy"]
    interval = {"balanced_accuracy": [middle - 0.03, middle + 0.03], "auc": None}
    return found | {"interval": interval, "not_measured": None}


def attacked(guess, names):
    return {"attackers": {"forest": scores(guess, names)}, "strongest": "forest"}


def moved(raw, anonymized):
    relative = (anonymized - raw) / raw if raw else None
    absolute = abs(anonymized - raw)
    means = {"raw": raw, "anonymized": anonymized}
    return {**means, "relative_error": relative, "absolute_error": absolute}


def anonymizer(bad=BAD, **changes):
    """Returns a report of an anonymizer; ``bad`` is part of every name in the data."""
    public, private = f"activity {bad}", f"side {bad}"
    classes = {
        public: (f"slow {bad}", f"fast {bad}"),
        private: (f"left {bad}", f"right {bad}"),
        "subject": (f"ann {bad}", f"bea {bad}"),
    }
    sides = lambda safe, name: {
        "raw": scores(RIGHT, classes[name]),
        "anonymized": scores(safe, classes[name]),
    }
    row = {"attribute": private, "attacker": "forest", "variant": f"n {bad}"}
    figures = {"correlation": 0.125}
    made = {
        "dataset": {
            **{"name": f"toy {bad}", "preset": bad, "split": "given"},
            **{"channels": (f"x {bad}", "y"), "units": (f"g {bad}", "g")},
            **{"rate_hz": 8.0, "time": 4, "public": public, "private": (private,)},
            **{"classes": classes, "mean": (0.0, 0.0), "std": (1.0, 1.0)},
            **{"test_windows": 1234, "test_subjects": 2},
            "test_subjects_in_training": 2,
        },
        "method": {"name": f"m {bad}", "config": {"gamma": bad}, "rounds": 3},
        "utility": {"attribute": public, **sides(RIGHT, public)},
        "intrusive": {private: sides(WRONG, private)},
        "reidentification": {private: attacked(HALF, classes[private])},
        "linkage": attacked(HALF, classes["subject"])
        | {"raw": scores(RIGHT, classes["subject"])},
        "mutual_information": {private: {"raw": 0.4321, "anonymized": 0.1234}},
        "attacks": {
            "per_class": [
                row | {"scores": scores(HALF, classes[private]), "figures": {}}
            ],
            "inversion": [
                row | {"scores": None, "figures": figures},
                row | {"scores": None, "figures": {}, "reason": f"few {bad}"},
            ],
        },
        "distortion": {
            "warping": {"mean": 1.25, "std": 0.5},
            "steps": {"threshold": moved(4.0, 3.0), "jerk_pace": None},
            "statistics": {f"x {bad}": {"mean": moved(0.0, 0.25)}},
        },
        **{"attackers": ["forest"], "share": 0.5, "seed": 7},
        "costs": {
            **{"compile_s": 2.0, "round_s": 0.5, "first_round": 1, "last_round": 30},
            **{"memory_bytes": 3_000_000, "memory_of": "device", "device": bad},
        },
    } | changes
    made["headline"], made["protocol"] = report.headline(made), report.protocol(made)
    return made


def learner(bad=BAD, **changes):
    """Returns a report of a classifier with two clients, one of them new."""
    row = {"windows": 5, "accuracy": 0.875, "macro_f1": 0.625, "new": False}
    clients = [row | {"subject": f"ann {bad}"}]
    clients.append(row | {"subject": f"bea {bad}", "accuracy": 0.375, "new": True})
    return {
        "method": {"name": f"m {bad}", "rounds": 3},
        "dataset": {"name": f"toy {bad}"},
        **{"attribute": f"activity {bad}", "clients": clients, "seed": 7},
        **{"worst": f"ann {bad}", "new_clients": 0.375, "privacy": None},
        "mean": {"accuracy": 0.875, "macro_f1": 0.625},
        "std": {"accuracy": 0.125, "macro_f1": 0.0},
        "pooled": {"majority": 0.5625},
        "traffic": {"up": 1500.0, "down": 2_500_000.0},
    } | changes


def regression(bad=BAD):
    """Returns a report of forecasts.

    The second client's R² is below the plotted range.
    """
    row = {"windows": 5, "mae": 1.5, "rmse": 2.5, "new": False}
    clients = [row | {"subject": "ann", "r2": 0.75}, row | {"subject": bad, "r2": -3.0}]
    mean = {"r2": -1.125, "mae": 1.5, "rmse": 2.5}
    baseline = {"mean": mean | {"r2": 0.0625}, "pooled": mean | {"r2": 0.03125}}
    return learner(
        bad,
        **{"unit": f"W {bad}", "clients": clients, "worst": bad, "new_clients": None},
        **{"mean": mean, "std": mean, "median": mean | {"r2": 0.5}},
        pooled=mean | {"r2": 0.25},
        baselines={"persistence": baseline, "mean": baseline},
        example={
            "subject": bad,
            "truth": [1.0, 2.0, 3.0],
            "predicted": [1.0, 2.5, 2.0],
        },
        shuffled={"slots": 3, "linked": 0.25, "chance": 0.125},
    )


def pfdrl(bad=BAD):
    """Returns a report of PFDRL: a held-out day of two homes, and a new home."""
    total = {
        **{"standby_kwh": 4.0, "saved_kwh": 2.5, "saved_share": 0.625},
        **{"cents_fixed": 29.25, "cents_variable": 31.5, "in_use_minutes": 1210},
        **{"switched_off_share": 0.0125, "dimmed_share": 0.0225},
        "optimal_share": 0.8125,
    }
    settings = {"cents": 11.5, "forecaster": bad, "graph": "ring", "slot_min": 20}
    model = {"accuracy": 0.75, "mae": 11.5, "rmse": 22.5, "mase": 2.125}
    minutes = {"load": [5.0] * 1440, "forecast": [4.0] * 1440}
    minutes |= {"mode": [1] * 1440, "action": [0] * 1440}
    joined = {"saved": [0.5, 1.0], "optimal": [0.5, 1.0], "days": [2], "final": [1.0]}
    no_mase, empty = total | {"kind": "tv", "mase": None}, total | {"saved_share": None}
    return {
        "method": {"name": "pfdrl", "settings": settings | {"sharing": f"s {bad}"}},
        "dataset": {"homes": 2, "devices": 4},
        **{"seed": 7, "overall": total, "privacy": None},
        **{"per_day": [total | {"day": 2}], "per_month": [empty | {"month": bad}]},
        "per_hour": [total | {"hour": hour} for hour in range(24)],
        "per_home": [total | {"home": f"home {bad}"}],
        "per_kind": [total | {"kind": bad, "mase": 3.25}, no_mase],
        "training": [total | {"day": 1, "reward": 1.5}],
        "forecast": {"model": model, "persistence": model | {"accuracy": 0.875}},
        "untold": [f"tv {bad}", "b", "c", "d"],
        "hearing": {"mean": 1.5, "nobody": 3},
        "newcomers": {
            **{"homes": ["c"], "known": 1, "devices": 2, "joined": joined},
            "alone": joined | {"days": [0], "final": [0.0]},
        },
        "example": {
            **{"home": f"home {bad}", "day": 2, "date": bad},
            "devices": [
                {"name": f"tv {bad}", "standby_w": 0.5, "on_w": 95.5, **minutes},
                {"name": "pc", "standby_w": 0.0, "on_w": 95.5, **minutes},
            ],
        },
    }


def budget(bad=BAD):
    """Returns rows of a budget's curve: raw windows, then two releases."""
    score = lambda share: {"balanced_accuracy": share, "chance": 0.5}
    useful, secret = f"activity {bad}", f"gender {bad}"
    row = lambda epsilon, one, other: {
        **{"epsilon": epsilon, "useful": [useful]},
        "scores": {useful: score(one), secret: score(other)},
    }
    return [row(None, 0.975, 0.925), row(0.5, 0.625, 0.525), row(500, 0.875, 0.575)]


def examples(classes=2, channels=2):
    names = tuple(f"{BAD} {k}" for k in range(classes))
    return Examples(names, *np.ones((2, classes, 4, channels)))


@pytest.fixture(scope="session")
def made():
    """Returns this module, which tests cannot import."""
    return sys.modules[__name__]
