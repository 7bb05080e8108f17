"""Tests of errors for invalid settings, before anything is compiled."""

import dataclasses

import numpy as np
import pytest

from jaxanon.core.method import Method, check_hyper
from jaxanon.core.registry import default_epochs
from jaxanon.methods import BlinderConfig, recipes

NAN = float("nan")


def test_the_defaults_grade_what_leaves_and_the_paper_s_settings_are_at_hand():
    config = BlinderConfig()
    assert (config.guided, config.anonymization, config.flip_probability) == (
        True,
        "automatic",
        0.51,
    )
    assert (config.alpha, config.beta, config.gamma) == (1.0, 0.5, 60.0)
    assert (
        config.utility,
        config.output_discriminator_weight,
        config.client_fraction,
    ) == (30.0, 60.0, None)
    assert (config.discriminator_hidden_sizes, config.discriminator_rounds) == (
        (256, 256),
        3,
    )
    assert (config.ema_decay, config.inner_learning_rate) == (0.9995, 3e-5)
    assert default_epochs("blinder") == 20 and default_epochs("atlas") == 20
    paper = BlinderConfig(**recipes("blinder")["paper"].settings)
    assert not paper.guided and paper.anonymization == "stochastic"
    assert (paper.alpha, paper.beta, paper.gamma, paper.client_fraction) == (
        0.9,
        2.0,
        0.2,
        0.4,
    )


def test_what_may_be_nothing():
    zeros = (
        "alpha",
        "beta",
        "gamma",
        "utility",
        "output_discriminator_weight",
        "discriminator_learning_rate",
    )
    config = BlinderConfig(hidden_sizes=(), filters=(4, 8), **dict.fromkeys(zeros, 0))
    assert dataclasses.replace(config, latent_dim=np.int64(3)).latent_dim == 3


def test_hyper_parameters_are_refused_as_settings_are():
    method = Method("blinder", BlinderConfig(), *[None] * 5)
    check_hyper(method, {"gamma": np.float32(0.5), "beta": 0, "latent_dim": 3})
    for value in (-1.0, np.asarray(-1.0)):
        with pytest.raises(ValueError, match=r"beta must be finite and >= 0, got -1.0"):
            check_hyper(method, {"beta": value})
    for value in (NAN, np.ones(2), "2"):
        with pytest.raises(ValueError, match="gamma must be a finite number, got"):
            check_hyper(method, {"gamma": value})
