"""Attacks reject arguments that they once accepted or crashed on."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import attacks


@pytest.mark.parametrize("kind", [np.uint8, np.int8, np.int64])
def test_models_may_have_any_numbers(kind):
    """The largest of their dtype, for which a table has no row."""
    most = np.iinfo(kind).max
    named = [np.array(own, kind) for own in ([most, 1], [1, 1], [most - 1, most - 1])]
    plain = [[2, 0], [0, 0], [1, 1]]
    for ordered in (False, True):
        found, want = (
            attacks.uniqueness(jax.random.key(0), own, sizes=[1, 2], ordered=ordered)
            for own in (named, plain)
        )
        np.testing.assert_array_equal(found, want)


def test_no_size_is_refused():
    with pytest.raises(ValueError, match="sizes and draws must be at least 1"):
        attacks.uniqueness(jax.random.key(0), [[0], [1]], sizes=[])


def test_windows_of_another_shape_do_not_correlate():
    with pytest.raises(ValueError, match=r"one shape, got \(2, 3\) and \(3, 2\)"):
        attacks.correlation(jnp.ones((2, 3)), jnp.ones((3, 2)))


@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e25])
def test_windows_correlate_in_any_unit(unit):
    window = jnp.arange(7.0) * unit
    assert float(attacks.correlation(window, window)) == pytest.approx(1)
    assert float(attacks.correlation(window, -window)) >= -1
    assert float(attacks.correlation(window, 0 * window)) == 0


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 1), (1, 3), (2, 4)])
def test_profiles_that_are_no_table_are_refused(shape):
    with pytest.raises(ValueError, match=r"must be float\[streams, n\]"):
        attacks.compare_streams(np.ones((2, 3)), np.ones(shape))


@pytest.mark.parametrize("labels", [[0, 2], [-1, 1]])
def test_labels_that_there_are_not_teach_nobody(labels):
    windows = np.ones((2, 4, 1), np.float32)
    with pytest.raises(ValueError, match=r"labels must be in \[0, 2\), got"):
        attacks.self_train(jax.random.key(0), windows, labels, windows, 2)
    target = attacks.Target(
        lambda key, own: own, windows.repeat(2, 0), np.repeat(labels, 2), 2, windows,
        "gender",
    )  # fmt: skip
    one, other = jax.random.split(jax.random.key(0))[:, None]
    with pytest.raises(ValueError, match=r"gender must be in \[0, 2\), got"):
        attacks.reidentify(one, "tree", [target], share=1.0)
    with pytest.raises(ValueError, match=r"gender must be in \[0, 2\), got"):
        own = np.repeat(labels, 2)
        attacks.reidentify_as_released(
            other, "tree", [target._replace(safe_test=windows.repeat(2, 0))], [own],
            share=1.0,
        )  # fmt: skip
