"""Tests of RAE + AAE: the training phases, classifiers and errors."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxanon import datasets
from jaxanon.methods.malekzadeh import replacement
from jaxanon.methods.malekzadeh.replacement import rae_aae
from jaxanon.training import trainer

LISTS = {"black": ("c",), "gray": ("a",)}
SMALL = {
    "replacer_filters": (6, 4),
    "replacer_hidden_sizes": (32, 24),
    "batch_size": 48,
} | LISTS


WIDTHS = {"filters": 4, "classifier_filters": 4, "classifier_hidden_sizes": (6,)}


def _four(data):
    """The toy data with half of class b's windows moved to a class d."""
    names = data.spec.classes | {"activity": ("a", "b", "c", "d")}

    def part(windows):
        activity = windows.labels["activity"].copy()
        where = np.flatnonzero(activity == 1)[::2]
        activity[where] = 3
        return windows._replace(labels=windows.labels | {"activity": activity})

    spec = dataclasses.replace(data.spec, classes=names)
    return data._replace(spec=spec, train=part(data.train), test=part(data.test))


def test_rae_aae_s_components_take_turns(given_to_central, data):
    spec, epochs = _four(data).spec, {"replacing": 2, "pretraining": 1}
    given = given_to_central("rae_aae", spec, **SMALL, **WIDTHS, **epochs)
    playing = [
        [
            component.groups[0]
            for component in given["components"]
            if bool(component.when_fn(number))
        ]
        for number in (0, 19, 20, 29, 30, 99)
    ]
    assert playing == [["replacer"]] * 2 + [["readers"]] * 2 + [["encoder"]] * 2


def test_rae_aae_reads_the_white_classes_of_replaced_windows(given_to_central, data):
    four = _four(data)
    given = given_to_central("rae_aae", four.spec, **SMALL, **WIDTHS)
    prepared = given["room"].prepare_fn(datasets.by_client(four.train))
    batch = given["room"].draw_fn(jax.random.key(0), prepared, 0)
    plain = replacement.draw(jax.random.key(0), prepared, 48)
    activity = np.asarray(plain.labels["activity"])
    white = np.isin(activity, (1, 3))
    np.testing.assert_array_equal(batch.labels["activity"][white], activity[white] // 2)
    assert (np.asarray(batch.weights["activity"])[~white] == 0).all()
    assert (np.asarray(batch.weights["activity"])[white] > 0).all()
    assert (np.asarray(batch.weights["gender"]) > 0).all()
    # Classifiers and the second autoencoder receive the replacer's output.
    params = jax.jit(given["init_fn"])(jax.random.key(0))
    assert params["readers"]["windows"]["activity"]["Dense_1"]["kernel"].shape[1] == 1
    _, readers, model = given["components"]
    other = params | {"replacer": jax.tree.map(lambda x: 2 * x, params["replacer"])}
    hyper = given["hyper"]
    for component in (readers, model):
        loss = jax.jit(
            lambda params, component=component: component.loss_fn(
                jax.random.key(1), params, hyper, batch, None
            )[0]
        )
        assert abs(loss(params) - loss(other)) > 1e-4
    anonymize = jax.jit(given["anonymize_fn"])
    shown = [
        anonymize(jax.random.key(2), each, batch.windows) for each in (params, other)
    ]
    assert np.abs(shown[0] - shown[1]).max() > 1e-4


@pytest.mark.slow
def test_rae_aae_runs(data):
    four = _four(data)
    widths = {"filters": 4, "classifier_filters": 4, "classifier_hidden_sizes": (6,)}
    method = rae_aae(four.spec, **SMALL | widths, replacing=1, pretraining=1)
    run = trainer.train(method, four, epochs=3, progress=False)
    shown = run.anonymize(jax.random.key(2), four.test.windows)
    assert shown.shape == four.test.windows.shape and np.isfinite(shown).all()
    assert abs(shown.mean() - 10) < 3


def test_at_least_two_white_classes_are_required(data):
    with pytest.raises(
        ValueError, match="leave at least two classes of 'activity' .* leave 1"
    ):
        rae_aae(data.spec, **LISTS)
