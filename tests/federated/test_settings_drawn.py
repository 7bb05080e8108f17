"""Algorithms and their helpers reject drawn invalid settings by name."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_rounds import CLIENTS, NAMES, ROWS, SETTINGS, begun, loss_fn, made, of_rows
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import federated as fed

EACH = pytest.mark.parametrize("name", NAMES)
FULL = np.ones((CLIENTS, ROWS), bool)
few = settings(max_examples=5, deadline=None)


def never(key):
    pytest.fail("a setting was looked at too late")


OUTSIDE = [math.nan, math.inf, -math.inf, -1.5, -7, np.float32(-2), np.float64("nan")]
COUNTS = [math.nan, math.inf, -1, 1.5, "x", b"x", True, (1,), [], object(), 1j]
WORDS = ["", "x", "ROWS", b"rows", math.nan, True, 3, (1,), []]
TOO_SMALL = [0, -1, -2.5, -math.inf]
REFUSED = [
    *((each, "num_clients", TOO_SMALL) for each in ("atlas", "ditto", "feddl")),
    *((each, "num_clients", TOO_SMALL) for each in ("fedmask", "fedper", "fedprox")),
    *((each, "num_clients", TOO_SMALL) for each in ("fedrep", "fedsgd_ldp")),
    *((each, "num_clients", TOO_SMALL) for each in ("ldp_fl", "localized")),
    *((each, "num_clients", TOO_SMALL) for each in ("pfedme", "per_fedavg")),
    ("scaffold", "num_clients", TOO_SMALL),
    *(
        ("centralized_clustering", each, [0, *COUNTS])
        for each in ("num_clients", "num_clusters")
    ),
    *(("clusterfl", each, [0, *COUNTS]) for each in ("num_clusters", "every")),
    *(("fedavg", each, [0, *COUNTS]) for each in ("cohort_size", "rounds_per_cohort")),
    *(("atlas", each, [0, *COUNTS]) for each in ("max_layers", "send_slots")),
    *((each, "weighting", WORDS) for each in ("fedavg", "fedsgd")),
    *(
        ("atlas", each, WORDS)
        for each in ("privacy_unit", "noise_interpretation", "clipping")
    ),
    *(("atlas", "scores", WORDS), ("clusterfl", "form", WORDS)),
    *(
        ("centralized_clustering", "alone", COUNTS),
        ("pfedme", "personal_steps", [0, *COUNTS]),
    ),
    ("ldp_fl", "radii", [0, *OUTSIDE]),
    ("dp_fedavg", "count_stddev", [math.nan, *TOO_SMALL]),
]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(REFUSED), st.data())
def test_settings_are_refused_by_name_as_an_algorithm_is_made(refused, data):
    name, setting, values = refused
    value = data.draw(st.sampled_from(values))
    with pytest.raises((TypeError, ValueError), match=setting):
        made(name, never, **{setting: value})


@pytest.mark.parametrize("name", SETTINGS)
@few
@given(st.data())
def test_hyper_parameters_are_refused_by_name_before_anything_begins(name, data):
    algorithm = made(name, never)
    init = lambda **hyper: algorithm.init(jax.random.key(0), **hyper)
    if begun(name).hyper:
        setting = data.draw(st.sampled_from(sorted(begun(name).hyper)))
        with pytest.raises(ValueError, match=setting):
            init(**{setting: data.draw(st.sampled_from(OUTSIDE))})
    other = data.draw(st.sampled_from(["lr", "Step_size", "learning_rates", "epsilon"]))
    with pytest.raises(TypeError, match=f"hyper-parameters.*'{other}'"):
        made(name).init(jax.random.key(0), **{other: 0.5})


@pytest.mark.parametrize("name", [n for n in SETTINGS if "num_clients" in SETTINGS[n]])
@settings(max_examples=2, deadline=None)
@given(st.sampled_from([1, 2, 4, 7]))
def test_a_population_of_another_size_is_refused(name, number):
    clients = jax.tree.map(lambda leaf: leaf[np.arange(number) % 3], of_rows(0, FULL))
    message = f"population must have 3 clients as the algorithm, got {number}"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(made(name).update, jax.random.key(0), begun(name), clients)


@EACH
@settings(max_examples=2, deadline=None)
@given(st.sampled_from([jnp.mean, jnp.sum, lambda x: x[:, None], lambda x: x[1:]]))
def test_a_loss_that_is_not_one_number_a_row_is_refused(name, of):
    wrong = made(name, loss_fn=lambda *args: of(loss_fn(*args)))
    with pytest.raises(ValueError, match="loss_fn must return"):
        jax.eval_shape(wrong.update, jax.random.key(0), begun(name), of_rows(0, FULL))


KEY = jax.random.key(0)
HALF, SHARED = np.full((2, 2), 0.5), {"w": True}
PARAMS = {"w": jnp.ones((2, 1))}
LOTS = {"sampling_probability": 0.5, "expected_batch_size": 2.0, "max_examples": 4}
PRIVATE = {
    "learning_rate": 0.1,
    "num_steps": 1,
    "clip_norms": 1.0,
    "noise_multipliers": 1.0,
}


def noisily(**noise):
    mail, noise = (
        fed.empty_noisy_message_buffer(PARAMS, SHARED),
        {"noise_multiplier": 1.0} | noise,
    )
    fed.exchange_noisily(
        KEY, mail, PARAMS, HALF, shared=SHARED, **{"clip_norm": 1.0} | noise
    )


def exchanged(shared=SHARED, period=1):
    mail = fed.empty_message_buffer(PARAMS, SHARED)
    fed.exchange_every(period, KEY, mail, PARAMS, HALF, 0, shared=shared)


def privately(**settings):
    rows, mask = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), of_rows(0, FULL))
    chosen = {"lots": fed.PoissonSampling(**LOTS)} | PRIVATE | settings
    fed.local_dp_sgd(loss_fn, KEY, begun("fedsgd").params, rows, mask, **chosen)


def seen(num_rounds):
    fed.simulate_observed(
        made("fedsgd"), KEY, begun("fedsgd"), of_rows(0, FULL), num_rounds
    )


def cohort(**sizes):
    fed.sample_cohort(KEY, 0, 4, **{"size": 2} | sizes)


sent = {"a": jnp.ones(2)}, {"a": np.ones(2, bool)}
NO_NUMBERS = ["x", b"x", True, (1,), [], {}, object(), 1j]
NUMBERS = [math.nan, math.inf, -1, -0.5]
ODD = [math.nan, math.inf, -1, 0, 1.5, True]
OTHERS = {
    "base_layers": (lambda alpha: fed.base_layers("ab", alpha), {"alpha": [-1, 3, 99]}),
    "exchange_every": (
        exchanged,
        {"period": ODD, "shared": [{}, {"v": True}, {**SHARED, "v": False}]},
    ),
    "exchange_noisily": (
        noisily,
        {
            "clip_norm": [0, None, *NUMBERS, *NO_NUMBERS],
            "noise_multiplier": [None, *NUMBERS, *NO_NUMBERS],
        },
    ),
    "descend_privately": (
        privately,
        {
            "num_steps": [0, None, *COUNTS],
            "clip_norms": [0, -1.0, math.nan],
            "noise_multipliers": [-1.0, math.nan],
        },
    ),
    "Lots": (
        lambda **other: fed.PoissonSampling(**LOTS | other),
        {
            "sampling_probability": [0, 1.5, *NUMBERS],
            "expected_batch_size": [0, *NUMBERS],
            "max_batch_size": [0, *COUNTS],
            "max_examples": [0, None, *COUNTS],
        },
    ),
    "Messages": (
        lambda **other: fed.ChannelConfig(**{"max_age": 1} | other),
        {
            each: [1.5, None, *NUMBERS, *NO_NUMBERS]
            for each in ("drop_probability", "delay_probability")
        }
        | {"max_age": [None, *COUNTS]},
    ),
    "meta": (
        lambda **other: fed.fed_maml(
            *(never, never, never, never),
            **{"hyper": {"server_learning_rate": 1.0}, "server_optimizer": None}
            | other,
        ),
        {
            "hyper": [{}, {"learning_rate": 1.0}],
            "averaging": [1, 1.5, *NUMBERS],
            "rounds_per_list": TOO_SMALL,
        },
    ),
    "observed": (seen, {"num_rounds": [0, -1, -math.inf]}),
    "population": (
        lambda mask: fed.population({"x": np.ones((2, 3))}, mask),
        {"mask": [0, "x", None, np.ones(2), np.ones((2, 1, 3))]},
    ),
    "sample_cohort": (
        cohort,
        {"size": [0, -1, 5, math.nan, math.inf], "rounds_per_cohort": TOO_SMALL},
    ),
    "sampled_gaussian": (
        lambda **other: fed.sampled_gaussian(
            fed.PoissonSampling(**LOTS), **{"noise_multiplier": 1.0, "steps": 1} | other
        ),
        {
            "noise_multiplier": [0, None, *NUMBERS, *NO_NUMBERS],
            "steps": [0, None, *COUNTS],
        },
    ),
    "shuffled": (
        lambda num_slots: fed.shuffle_messages(KEY, *sent, num_slots),
        {"num_slots": TOO_SMALL},
    ),
    "Steps": (
        lambda **other: fed.Steps(**{"num_steps": 1} | other),
        {
            "num_steps": [0, None, *COUNTS],
            "batch_size": [0, *COUNTS],
            "shuffle": [0, 1, "x", None, math.nan, (True,)],
        },
    ),
}


@pytest.mark.parametrize("name", OTHERS)
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_what_is_out_of_the_contract_is_refused_by_name(name, data):
    call, refused = OTHERS[name]
    setting = data.draw(st.sampled_from(sorted(refused)))
    value = data.draw(st.sampled_from(refused[setting]))
    with pytest.raises((TypeError, ValueError), match=setting):
        call(**{setting: value})
