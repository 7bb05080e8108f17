"""Resampling of drawn rows, masks and labels, against loops."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import kernels

pytestmark = pytest.mark.slow

few = settings(max_examples=10, deadline=None)
CLASSES = 3


@st.composite
def clients(draw, sizes=(1, 6)):
    """Draws rows, labels (some of absent classes), and the mask of real rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    number = draw(st.sampled_from(sizes))
    shape = draw(st.sampled_from(((2,), (2, 1))))
    x = rng.normal(size=(number, *shape)).astype(draw(st.sampled_from(("f4", "f2"))))
    labels = rng.integers(
        *draw(st.sampled_from(((0, 1), (0, 3), (-1, 4)))), size=number
    )
    share = draw(st.sampled_from((0.0, 0.6, 1.0)))
    return x, labels.astype(np.int32), rng.random(number) < share


def of_class(client, wanted):
    _, labels, mask = client
    return np.flatnonzero(mask & (labels == wanted))


def neighbours_of(client, row, number):
    """Returns the nearest rows of its class, by distances in float64."""
    x, labels, mask = client
    others = [i for i in of_class(client, labels[row]) if i != row] if mask[row] else []
    flat = x.reshape(len(x), -1).astype(np.float64)
    others.sort(key=lambda i: np.linalg.norm(flat[i] - flat[row]))
    return others[:number]


@few
@given(
    client=clients(), number=st.sampled_from((1, 5)), block=st.sampled_from((4, 256))
)
def test_neighbours_are_the_nearest_real_rows_of_a_class(client, number, block):
    found, real = kernels.same_class_neighbors(*client, number, block=block)
    assert found.shape == (len(client[0]), number)
    for row in range(len(found)):
        expected = neighbours_of(client, row, number)
        assert int(real[row]) == len(expected)
        rest = [row] * (number - len(expected))
        np.testing.assert_array_equal(found[row], [*expected, *rest])


@few
@given(client=clients())
def test_a_table_holds_each_real_row_of_a_class_once(client):
    table = kernels.balance_table(*client, CLASSES, 2)
    for c in range(CLASSES):
        start, count = int(table.starts[c]), int(table.counts[c])
        rows = np.asarray(table.order)[start : start + count]
        np.testing.assert_array_equal(np.sort(rows), of_class(client, c))


def between(client, row, wanted, number):
    """Returns whether a row lies between one of its class and a neighbour."""
    x, flat = np.asarray(row, np.float64).ravel(), client[0].reshape(len(client[0]), -1)
    flat = flat.astype(np.float64)
    near = 1e-5 if client[0].dtype == np.float32 else 6e-3
    for i in of_class(client, wanted):
        for j in neighbours_of(client, i, number) or [i]:
            along = flat[j] - flat[i]
            length = along @ along
            u = np.clip(along @ (x - flat[i]) / length, 0, 1) if length else 0
            if np.abs(flat[i] + u * along - x).max() <= near:
                return True
    return False


def checked(client, rows, number):
    """Checks that drawn rows have existing classes and lie between their rows."""
    assert rows.x.dtype == client[0].dtype and rows.x.shape[1:] == client[0].shape[1:]
    for x, label, real in zip(rows.x, rows.labels, rows.mask, strict=True):
        if real:
            assert between(client, x, int(label), number)
        else:
            assert not np.any(x)


@few
@given(client=clients(), seed=st.integers(0, 99), num=st.sampled_from((1, 4)))
def test_new_rows_lie_between_neighbours_of_a_class(client, seed, num):
    table = kernels.balance_table(*client, CLASSES, 2)
    rows = kernels.smote(jax.random.key(seed), client[0], table, num)
    np.testing.assert_array_equal(rows.labels, np.repeat(np.arange(CLASSES), num))
    there = [len(of_class(client, c)) > 0 for c in range(CLASSES)]
    np.testing.assert_array_equal(rows.mask, np.repeat(there, num))
    checked(client, rows, 2)


@few
@given(client=clients(), seed=st.integers(0, 99), most=st.sampled_from((1, 4)))
def test_under_sampling_takes_each_row_once_at_most(client, seed, most):
    _, labels, mask = client
    key = jax.random.key(seed)
    found, real = kernels.under_sample(key, labels, mask, CLASSES, most)
    for c in range(CLASSES):
        part = slice(c * most, (c + 1) * most)
        taken = np.asarray(found[part])[np.asarray(real[part])]
        own = of_class(client, c)
        assert len(taken) == len(set(taken)) == min(most, len(own))
        assert set(taken) <= set(own)


@few
@given(
    client=clients(), seed=st.integers(0, 99), samples_per_class=st.sampled_from((1, 4))
)
def test_balanced_classes_hold_their_own_rows_and_as_many_as_asked(
    client, seed, samples_per_class
):
    rows = kernels.balance(jax.random.key(seed), *client, CLASSES, samples_per_class, 2)
    np.testing.assert_array_equal(
        rows.labels, np.repeat(np.arange(CLASSES), samples_per_class)
    )
    checked(client, rows, 2)
    for c in range(CLASSES):
        own = of_class(client, c)
        part = np.asarray(rows.x[c * samples_per_class : (c + 1) * samples_per_class])
        real = rows.mask[c * samples_per_class : (c + 1) * samples_per_class]
        assert np.all(real) if len(own) else not np.any(real)
        # All rows of a small class are present, and the given number of a large one.
        kept = sum(
            np.any(np.all(part == one, axis=tuple(range(1, part.ndim))))
            for one in client[0][own]
        )
        assert kept == min(len(own), samples_per_class)


@few
@given(
    client=clients(),
    seed=st.integers(0, 99),
    samples_per_class=st.sampled_from((0.5, 1, 9)),
    num=st.sampled_from((1, 8)),
)
def test_draws_are_of_classes_that_there_are_with_a_table_or_without(
    client, seed, samples_per_class, num
):
    x, labels, mask = client
    key = jax.random.key(seed)
    table = kernels.balance_table(x, labels, mask, CLASSES, 2)
    rows = kernels.draw_from_table(key, x, table, samples_per_class, num)
    real = mask & (labels >= 0) & (labels < CLASSES)
    assert np.all(rows.mask) if real.any() else not np.any(rows.mask)
    checked(client, rows, 2)
    if samples_per_class <= 1:  # All rows are then real.
        assert all(
            np.any(np.all(x[real] == one, axis=tuple(range(1, x.ndim))))
            for one in np.asarray(rows.x)[np.asarray(rows.mask)]
        )
    found = kernels.same_class_neighbors(x, labels, mask, 2)
    again = kernels.draw_balanced(
        jax.random.clone(key), x, labels, mask, *found, CLASSES, samples_per_class, num
    )
    for one, other in zip(rows, again, strict=True):
        np.testing.assert_array_equal(one, other)


@few
@given(
    what=st.sampled_from(("neighbours", "table", "under_sample", "balance")),
    labels=st.sampled_from((np.zeros(3), np.zeros(2, int), np.zeros((3, 1), int))),
)
def test_labels_that_are_none_or_too_few_are_refused(what, labels):
    x, mask, key = np.ones((3, 2), np.float32), np.ones(3, bool), jax.random.key(0)
    calls = {
        "neighbours": lambda: kernels.same_class_neighbors(x, labels, mask, 1),
        "table": lambda: kernels.balance_table(x, labels, mask, 2, 1),
        "under_sample": lambda: kernels.under_sample(key, labels, mask, 2, 1),
        "balance": lambda: kernels.balance(key, x, labels, mask, 2, 1),
    }
    with pytest.raises((TypeError, ValueError), match="labels"):
        calls[what]()


@settings(max_examples=20, deadline=None)
@given(number=st.sampled_from((0, -1, 1.5, True, "2")), place=st.integers(0, 2))
def test_numbers_of_rows_that_are_none_are_refused(number, place):
    x, labels, mask = np.ones((3, 2), np.float32), np.zeros(3, int), np.ones(3, bool)
    given_numbers = [2, 2, 1]
    given_numbers[place] = number
    names = ("num_classes", "samples_per_class", "k_neighbors")
    with pytest.raises((TypeError, ValueError), match=names[place]):
        kernels.balance(jax.random.key(0), x, labels, mask, *given_numbers)
