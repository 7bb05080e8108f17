"""Errors of the aggregation kernels; each message names the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon.kernels import aggregation


def test_says_what_was_wrong():
    x = {"w": jnp.ones((3, 2))}
    with pytest.raises(ValueError, match=r"with 2 clients as in weights, got .*\(3, 2"):
        aggregation.layer_mean(x, jnp.ones(2))
    with pytest.raises(ValueError, match=r"sent must hold bool\[3\]"):
        aggregation.layer_mean(x, jnp.ones(3), sent=jnp.ones(4, bool))
    with pytest.raises(ValueError, match="num_trimmed must be >= 0, got -1"):
        aggregation.trimmed_mean(x, -1)
    with pytest.raises(ValueError, match=r"num_selected must be in \[1, 3\]"):
        aggregation.krum(x, 1, num_selected=4)
    with pytest.raises(ValueError, match="num_trimmed must be >= 0, got np.int64"):
        aggregation.trimmed_mean(x, np.int64(-1))
    for fraction in (
        lambda: aggregation.trimmed_mean(x, 1.5),
        lambda: aggregation.krum(jnp.ones(5), 0.5),
    ):
        with pytest.raises(TypeError, match=r"must be a Python int, got [01]\.5"):
            fraction()
    with pytest.raises(ValueError, match=r"num_byzantine must be in \[0, 0\] for 3"):
        aggregation.krum(x, np.int64(1))
    with pytest.raises(TypeError, match="num_selected must be known when .* static"):
        jax.jit(lambda num: aggregation.krum(x, 0, num_selected=num))(1)
    with pytest.raises(TypeError, match="max_abs must be known when the program"):
        jax.jit(lambda most: aggregation.fixed_point_decode(x, most, 2))(1.0)
    with pytest.raises(ValueError, match="at least one leaf, got none"):
        aggregation.coordinate_median({})
    with pytest.raises(TypeError, match=r"typed PRNG key such as jax.random.key\(0\)"):
        aggregation.fixed_point_encode(jnp.zeros(2, jnp.uint32), x, 1.0, 2)
    for bad, message in (
        ((0.0, 1), "max_abs must be a finite number > 0, got 0.0"),
        ((1.0, 0), "num_clients must be >= 1, got 0"),
        ((1.0, 1, 33), r"bits must be in \[2, 32\], got 33"),
        ((1.0, 1000, 11), "cannot hold the sum of 1000 clients; use at least 12 bits"),
    ):
        with pytest.raises(ValueError, match=message):
            aggregation.fixed_point_resolution(*bad)


@pytest.mark.parametrize("name", ["mean", "trimmed", "median", "krum", "distances"])
def test_whole_numbers_are_refused_rather_than_cut_off(name):
    # The mean of 1 and 2 is not an integer; rounding would return 1.
    updates = {"w": jnp.array([[1], [2], [2]])}
    call = {
        "mean": lambda: aggregation.layer_mean(updates, jnp.ones(3)),
        "trimmed": lambda: aggregation.trimmed_mean(updates, 1),
        "median": lambda: aggregation.coordinate_median(updates),
        "krum": lambda: aggregation.krum(updates, 0),
        "distances": lambda: aggregation.squared_distances(updates),
    }[name]
    with pytest.raises(TypeError, match=r"updates must hold floats, got int32; .*ast"):
        call()


def test_what_is_static_may_come_from_numpy():
    updates = {"w": jnp.array([1.0, 1.25, 0.75, 1.0, -80.0])}
    one, two = np.int64(1), np.int64(2)
    chosen, _ = aggregation.krum(updates, one, num_selected=two)
    # The mean of the two in the middle.
    assert float(chosen["w"]) == 1.0
    assert aggregation.fixed_point_resolution(np.float32(1), np.int64(1000)) == 2.0**-21
