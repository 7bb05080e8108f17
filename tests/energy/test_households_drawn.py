"""Random simulated or loaded homes: modes, numbers, kinds and files."""

import functools
import pathlib
import tempfile

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import energy
from jaxanon.energy import APPLIANCES, OFF, ON, STANDBY

SEEDS = st.integers(0, 2**32 - 1)
DAY = 1440
few = functools.partial(settings, deadline=None)


@few(max_examples=6)
@given(SEEDS, st.sampled_from([(1, 1), (3, 2)]), st.booleans())
def test_households_take_what_their_modes_say(seed, size, own):
    chosen = [APPLIANCES[4], APPLIANCES[1]] if own else APPLIANCES
    num_homes, days = size
    found = energy.households(jax.random.key(seed), num_homes, days, chosen)
    shape = num_homes, days * DAY, len(chosen)
    assert found.power.shape == found.mode.shape == shape
    assert found.names == tuple(one.name for one in chosen)
    power, mode = np.asarray(found.power), np.asarray(found.mode)
    assert set(np.unique(mode)) <= {OFF, STANDBY, ON}
    assert not power[mode == OFF].any()
    for level, which in ((found.standby_w, STANDBY), (found.on_w, ON)):
        level = np.broadcast_to(np.asarray(level)[:, None], shape)
        # Noise of 2 %: six deviations are 12.
        np.testing.assert_allclose(
            power[mode == which], level[mode == which], rtol=0.12
        )
    # Devices in use are not unplugged, and unplugged ones are used next.
    assert not ((mode[:, :-1] == ON) & (mode[:, 1:] == OFF)).any()
    assert not ((mode[:, :-1] == OFF) & (mode[:, 1:] == STANDBY)).any()
    alone = energy.households(jax.random.key(seed), 1, days, chosen)
    np.testing.assert_array_equal(alone.mode[0], mode[0])
    np.testing.assert_allclose(alone.power[0], power[0], rtol=1e-5)
    with pytest.raises(TypeError, match="key must be a typed PRNG key"):
        energy.households(seed, num_homes, days, chosen)


@few(max_examples=6)
@given(
    st.sampled_from([(1, 1, 1), (2, 1, 1)]), st.sampled_from([None, 1, 3]),
    st.sampled_from([None, ("computer", "television", "microwave oven")]),
    st.integers(0, 99),
)  # fmt: skip
def test_homes_that_are_loaded_are_those_that_are_made_up(size, devices, kinds, seed):
    homes, days, test_days = size
    found = energy.load_homes(
        "simulated", homes=homes, devices=devices, days=days, test_days=test_days,
        kinds=kinds, seed=seed,
    )  # fmt: skip
    chosen = [one for one in APPLIANCES if kinds is None or one.name in kinds][:devices]
    made = energy.households(jax.random.key(seed), homes, days + test_days, chosen)
    np.testing.assert_array_equal(found.power, made.power)
    assert found.kind_names == tuple(one.name for one in chosen)
    assert found.names == tuple(f"home {n + 1}" for n in range(homes))
    np.testing.assert_array_equal(found.kinds, [np.arange(len(chosen))] * homes)


@few(max_examples=6)
@given(SEEDS, st.sampled_from([None, 1, 2]), st.sampled_from([None, 1, 2]))
def test_homes_of_a_file_are_those_of_its_readings(seed, homes, devices):
    rng, place = np.random.default_rng(seed), np.arange(4 * 2 * DAY)
    rows = {
        "home": np.array(["a", "b"])[place // (4 * DAY)],
        "device": np.array(["pc", "tv"])[place // (2 * DAY) % 2],
        "minute": place % (2 * DAY),
        "power": rng.integers(0, 90, size=len(place)),
    }
    whole = energy.from_readings(*rows.values(), 2)
    options = {"homes": homes, "devices": devices, "days": 1, "test_days": 1}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "own.npz"
        np.savez(path, **rows)
        found = energy.load_homes(path, **options)
        for more, said in (
            ({"kinds": ["tv", "oven"]}, r"kinds must be among .* got \['oven'\]"),
            ({"homes": 3}, "homes must be at most 2"),
            ({"devices": 3}, "devices must be at most 2"),
            ({"source": folder}, "source must be None"),
            ({"days": 2}, "at most 2 for a"),
        ):
            with pytest.raises(ValueError, match=said):
                energy.load_homes(path, **options | more)
    np.testing.assert_array_equal(found.power, whole.power[:homes, :, :devices])
    assert found.names == whole.names[:homes]
    assert found.kind_names == whole.kind_names[:devices]


@given(
    st.sampled_from(["homes", "devices", "days", "test_days"]),
    st.integers(max_value=0), st.integers(7, 99), st.text(max_size=8),
)  # fmt: skip
def test_homes_that_there_are_not_are_refused(argument, number, devices, name):
    for wrong, said in (
        ({argument: number}, f"{argument} must be >= 1, got {number}"),
        ({"devices": devices}, "devices must be at most 6"),
        ({"kinds": [name]}, "kinds must be among"),
        ({"kinds": ["computer"], "devices": 2}, "devices must be at most 1"),
        ({"source": name}, "source must be None for 'simulated'"),
    ):
        with pytest.raises(ValueError, match=said):
            energy.load_homes("simulated", **wrong)
    with pytest.raises(ValueError, match="name_or_npz must be one of"):
        energy.load_homes(f"my {name}")
    make = functools.partial(energy.households, jax.random.key(0))
    for sizes, said in (((number, 1), "num_homes"), ((1, number), "days")):
        with pytest.raises(ValueError, match=f"{said} must be >= 1, got {number}"):
            make(*sizes)
        with pytest.raises(TypeError, match=f"{said} must be a Python int"):
            make(*(float(one) if one == number else one for one in sizes))
    with pytest.raises(ValueError, match="appliances must not be empty"):
        make(1, 1, [])
