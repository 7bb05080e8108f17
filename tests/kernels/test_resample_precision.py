"""Resampling in half and single precision against float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import federated, kernels


@pytest.mark.parametrize(
    ("dtype", "size"), [(jnp.float16, 6e4), (jnp.bfloat16, 3e38), (jnp.float32, 3e38)]
)
def test_new_rows_between_large_rows_are_finite(dtype, size):
    x = jnp.asarray([[size], [-size], [size / 2]], dtype)
    labels, mask = jnp.zeros(3, int), jnp.ones(3, bool)
    table = kernels.balance_table(jnp.asarray([[0.0], [1], [3]]), labels, mask, 1, 2)
    made = kernels.smote(jax.random.key(0), x, table, 32).x
    assert made.dtype == dtype
    assert np.all(np.abs(np.asarray(made, np.float64)) <= float(x[0, 0]))


@pytest.mark.parametrize(
    "rows",
    [
        np.array([2**40]),
        np.array([-(2**31) - 1, 0]),
        np.array([2**32], np.uint64),
        np.array([1e300, 1.0]),
        1.77e9 + np.arange(5.0) / 50,  # Seconds since 1970.
    ],
    ids=["int64", "below int32", "uint64", "beyond float32", "times"],
)
def test_numbers_that_jax_would_change_are_refused_by_name(rows):
    with pytest.raises(ValueError, match=r"rows\['t'\] must fit in "):
        federated.stack([{"t": rows}])


def test_numbers_that_round_little_are_stacked():
    rows = [9.81 + np.arange(3.0), np.array([np.nan, np.inf, 1e30]), np.array([2**30])]
    for each in rows:
        kept = np.asarray(federated.stack([each]).rows[0])
        np.testing.assert_allclose(kept, each, rtol=1e-6)


def test_labels_that_jax_would_change_are_refused():
    x, labels = np.ones((2, 1), np.float32), np.array([0, 2**40])
    with pytest.raises(ValueError, match="labels must fit in int32"):
        kernels.same_class_neighbors(x, labels, np.ones(2, bool), 1)
    with pytest.raises(ValueError, match="labels must fit in int32"):
        kernels.mutual_information(x, labels)
