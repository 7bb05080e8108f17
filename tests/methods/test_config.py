"""Settings that are wrong are refused by name, before anything is compiled."""

import dataclasses

import numpy as np
import pytest

from jaxanon.core.method import Method, check_hyper
from jaxanon.methods import BlinderConfig

NAN = float("nan")


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
