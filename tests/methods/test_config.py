"""Settings that are wrong are refused by name, before anything is compiled."""

import dataclasses

import numpy as np
import pytest

from jaxanon.core.method import Method, check_hyper
from jaxanon.methods import BLINDER_PAPER, BlinderConfig, default_epochs

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("server_step_size", -1.0, "server_step_size must be finite and > 0, got -1.0"),
        ("server_step_size", NAN, "server_step_size must be finite and > 0, got nan"),
        ("inner_step_size", 0.0, "inner_step_size must be finite and > 0, got 0.0"),
        ("adversary_step_size", -1.0, "adversary_step_size must .* >= 0, got -1.0"),
        ("alpha", NAN, "alpha must be finite and >= 0, got nan"),
        ("beta", -3.0, "beta must be finite and >= 0, got -3.0"),
        ("gamma", INF, "gamma must be finite and >= 0, got inf"),
        ("utility", -1.0, "utility must be finite and >= 0, got -1.0"),
        ("critic", INF, "critic must be finite and >= 0, got inf"),
        ("neighbours", 0, "neighbours must be >= 1, got 0"),
        ("hidden", (8, 0), r"hidden must be >= 1, got \(8, 0\)"),
        ("hidden", (-4,), r"hidden must be >= 1, got \(-4,\)"),
        ("adversary_hidden", (0,), r"adversary_hidden must be >= 1, got \(0,\)"),
        ("filters", (0, 8), r"filters must be >= 1, got \(0, 8\)"),
        ("filters", (8,), r"filters must be none or two, got \(8,\)"),
        ("filters", (8, 8, 8), r"filters must be none or two, got \(8, 8, 8\)"),
    ],
)
def test_a_setting_out_of_range(name, value, message):
    with pytest.raises(ValueError, match=message):
        BlinderConfig(**{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("latent", 2.5, "latent must be whole, got 2.5"),
        ("latent", True, "latent must be whole, got True"),
        ("hidden", (8, 2.5), r"hidden must be whole, got \(8, 2.5\)"),
        ("gamma", "high", "gamma must be a number, got 'high'"),
    ],
)
def test_a_setting_of_another_type(name, value, message):
    with pytest.raises(TypeError, match=message):
        BlinderConfig(**{name: value})


def test_the_defaults_grade_what_leaves_and_the_paper_s_settings_are_at_hand():
    config = BlinderConfig()
    assert (config.guided, config.anonymization, config.flip) == (
        True,
        "automatic",
        0.52,
    )
    assert (config.alpha, config.beta, config.gamma) == (1.0, 0.5, 60.0)
    assert (config.utility, config.critic, config.cohort) == (30.0, 60.0, 1.0)
    assert (config.adversary_hidden, config.adversary_rounds) == ((256, 256), 5)
    assert (config.averaging, config.inner_step_size) == (0.998, 3e-5)
    assert default_epochs("blinder") == 22 and default_epochs("atlas") == 20
    paper = BlinderConfig(**BLINDER_PAPER)
    assert not paper.guided and paper.anonymization == "stochastic"
    assert (paper.alpha, paper.beta, paper.gamma, paper.cohort) == (0.9, 2.0, 0.2, 0.4)


def test_what_may_be_nothing():
    zeros = ("alpha", "beta", "gamma", "utility", "critic", "adversary_step_size")
    config = BlinderConfig(hidden=(), filters=(4, 8), **dict.fromkeys(zeros, 0))
    assert dataclasses.replace(config, latent=np.int64(3)).latent == 3


def test_hyper_parameters_are_refused_as_settings_are():
    method = Method("blinder", BlinderConfig(), *[None] * 7)
    check_hyper(method, {"gamma": np.float32(0.5), "beta": 0, "latent": 3})
    for value in (-1.0, np.asarray(-1.0)):
        with pytest.raises(ValueError, match=r"beta must be finite and >= 0, got -1.0"):
            check_hyper(method, {"beta": value})
    for value in (NAN, np.ones(2), "2"):
        with pytest.raises(ValueError, match="gamma must be a finite number, got"):
            check_hyper(method, {"gamma": value})
