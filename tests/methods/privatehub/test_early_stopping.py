"""Tests of PrivateHub's early stopping: held-out windows, evaluations and stopping."""

from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

import jaxanon as ja
from jaxanon import datasets, methods
from jaxanon.core.method import Method
from jaxanon.federated.engine.algorithm import State
from jaxanon.methods.common import early_stopping, pool
from jaxanon.methods.privatehub import data as privatehub_data
from jaxanon.methods.privatehub import early_stopping as privatehub_early_stopping
from jaxanon.methods.privatehub import networks
from jaxanon.methods.privatehub.config import PrivateHubConfig
from jaxanon.sweeps import runner
from jaxanon.training import run_folder

pytestmark = pytest.mark.usefixtures("built_plainly")

SMALL = {"widths": (4,), "heads": 2, "batch_size": 32, "num_train_timesteps": 20}
SMALL |= {
    "num_inference_steps": 5,
    "classifier_filters": (4,),
    "classifier_features": 4,
}


def test_the_last_windows_of_each_person_and_class_are_held_out():
    mask = np.array([[True] * 9, [True] * 5 + [False] * 4])
    activity = np.array([[0, 1, 0, 0, 1, 0, 0, 2, 0], [1, 1, 1, 1, 1, 0, 0, 0, 0]])
    clients = datasets.Clients(np.zeros((2, 9, 4, 1)), {"activity": activity}, mask)
    spec = SimpleNamespace(public="activity")
    learned, held = pool.hold_out(spec, clients, 0.34)
    # 34 % of six, two, one and five windows are 2.04, 0.68, 0.34 and 1.7.
    assert [np.flatnonzero(own).tolist() for own in held.mask] == [[6, 8], [4]]
    np.testing.assert_array_equal(learned.mask, mask & ~held.mask)
    with pytest.raises(
        ValueError,
        match=r"validation_fraction must .* 0.1; .* fewer than 10 training windows per "
        r"class of 'activity'. Raise it, or set patience to 0",
    ):
        pool.hold_out(spec, clients, 0.1)


def test_looks_count_from_the_lowest_loss():
    seen, told = early_stopping.patience(), []
    for loss in (3.0, 2.0, 2.5, 2.0, 1.0):  # Equal is not lower.
        seen, better = early_stopping.look(seen, jnp.float32(loss))
        told.append((bool(better), float(seen.best), int(seen.waited)))
    assert told == [
        (True, 3, 0), (True, 2, 0), (False, 2, 1), (False, 2, 2), (True, 1, 0),
    ]  # fmt: skip


class Zero:
    """Always outputs 0."""

    def apply(self, variables, x, t, condition):
        del variables, t, condition
        return jnp.zeros_like(x)


def nets_of(spec, **settings):
    return networks.networks(spec, PrivateHubConfig(**(SMALL | settings)))


def test_every_held_out_window_counts_once(data):
    """Checks that an output of 0 for x0 has the mean square as error, for any t."""
    nets = nets_of(data.spec, patience=1, validation_fraction=0.3, prediction_type="x0")
    nets = nets._replace(unet=Zero())
    clients = datasets.by_client(data.train)
    offsets = np.random.default_rng(0).normal(size=(*clients.mask.shape, 1, 2))
    clients = clients._replace(windows=np.float32(clients.windows + offsets))
    prepared = privatehub_data.prepare(nets, clients)
    number = len(prepared.held_out.windows)
    assert number > 32 and number % 32  # The last part is not full.
    assert number + len(prepared.pool.windows) == len(data.train.windows)
    loss = jax.jit(
        lambda key: privatehub_early_stopping.held_out_loss(nets, key, {}, prepared[3])
    )
    want = np.mean(np.asarray(prepared.held_out.windows) ** 2)
    assert float(loss(jax.random.key(0))) == pytest.approx(want, rel=1e-5)
    # The condition has their own moments, relative to those of the others' classes.
    told, d = prepared.held_out.condition, 2
    own = np.asarray(prepared.held_out.windows)
    np.testing.assert_allclose(told.features[:, :d], own.mean(1), atol=1e-5)
    np.testing.assert_allclose(told.features[:, d : 2 * d], own.std(1), atol=1e-5)
    activity = prepared.held_out.labels["activity"]
    found = {name: x[activity] for name, x in prepared.statistics.items()}
    score = (own.mean(1) - found["center"]) / found["spread"]
    np.testing.assert_allclose(told.features[:, 2 * d :], score, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("hide", [(), ("a",)])
def test_the_best_weights_are_kept_step_by_step(monkeypatch, hide):
    """Compares with a plain loop over scripted losses, which weights stand for."""
    losses = jnp.float32([5, 3, 4, 2, 6, 7, 8, 1, 1, 1, 9, 9])  # At ends of epochs.
    patience, pretraining, rounds = 2, 8, 3
    config = SimpleNamespace(
        patience=patience, pretraining=pretraining, classes_to_hide=hide
    )
    nets = SimpleNamespace(config=config)
    monkeypatch.setattr(
        privatehub_early_stopping,
        "held_out_loss",
        lambda nets, key, denoiser, held: denoiser,
    )

    def update(key, state, data):
        # The running mean is the next loss; the denoiser counts rounds.
        running = losses[state.round // rounds]
        params = state.params | {"running mean": running}
        params["denoiser"] = state.params["denoiser"] + 1.0
        return state._replace(round=state.round + 1, params=params), {}

    plain = Method(*("x", config, None), *[None] * 2, update, None)
    method = privatehub_early_stopping.watching(nets, rounds, plain)
    params = {"denoiser": jnp.float32(0), "average": jnp.float32(-7)}
    params |= privatehub_early_stopping.groups(jax.random.key(0), params)
    state = State(jnp.int32(0), params, {}, {})
    step = jax.jit(
        lambda state: method.update(None, state, privatehub_data.Prepared(*"abc"))
    )

    best, waited, average, last = np.inf, 0, -7.0, 8 if hide else 99
    for number in range(1, 3 * len(losses) + 1):
        state, info = step(state)
        epoch = -(-number // rounds)
        loss = float(losses[epoch - 1])
        if number % rounds == 0 and epoch <= last and waited < patience:
            best, waited = (loss, 0) if loss < best else (best, waited + 1)
            average = best
        if epoch > last:
            average = loss  # Fine-tuning: the current running mean.
        found = state.params
        assert float(found["average"]) == average, number
        assert float(info["epochs without gain"]) == waited
        assert bool(privatehub_early_stopping.over(nets)(found)) == (waited >= patience)
        if hide and number == last * rounds:
            assert float(found["denoiser"]) == float(found["running mean"]) == 2.0
    # It stopped after 6 epochs, before it reached the loss of 1.
    assert best == 2 and waited == 2
    assert float(found["denoiser"]) == (2 + 12 if hide else 36)


HASTY = {"learning_rate": 1.0, "ema_decay": 0.0}  # The loss soon rises.
PATIENT = SMALL | {"patience": 1, "validation_fraction": 0.2}


def alike(one, other):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.slow
def test_who_has_stopped_rests(data, tmp_path):
    method = methods.privatehub(data.spec, **PATIENT)
    train = lambda epochs, **given: ja.train(
        method, data, epochs=epochs, hyper=HASTY, progress=False, **given
    )
    late = train(9, output_dir=tmp_path)
    rows = [row["losses"] for row in late.history]
    waited = [row["epochs without gain"] for row in rows]
    stop = next(epoch for epoch, x in enumerate(waited) if x)  # At the end.
    assert 0 < stop < 7
    playing = [row["denoising"] > 0 for row in rows]
    assert playing == [True] * (stop + 1) + [False] * (8 - stop)
    early = train(stop + 1)
    for group in ("denoiser", "classifiers", "average", "watch"):
        alike(early.state.params[group], late.state.params[group])
    # Sampling uses the weights of one epoch before it stopped.
    best = train(stop)
    alike(best.state.params["running mean"], late.state.params["average"])
    again = run_folder.open_run(tmp_path)
    alike(again.state, late.state)


@pytest.mark.slow
def test_members_of_a_sweep_stop_by_themselves(data):
    jax.config.update("jax_debug_key_reuse", False)  # A select with two uses.
    try:
        found = runner.sweep(
            methods.privatehub,
            data,
            grid={"learning_rate": [1e-3, 1.0]},
            epochs=5,
            layout="vmap",
            progress=False,
            **PATIENT,
            ema_decay=0.0,
        )
    finally:
        jax.config.update("jax_debug_key_reuse", True)
    waited = [int(run.state.params["watch"].seen.waited) for run in found.runs]
    assert waited == [0, 1]
    same = [
        all(map(np.array_equal, *(jax.tree.leaves(run.state.params[group]) for group in
                                  ("running mean", "average"))))
        for run in found.runs
    ]  # fmt: skip
    assert same == [True, False]


def test_the_method_says_which_windows_it_learns_from():
    data = toy.data()
    clients = datasets.by_client(data.train)
    method = methods.privatehub(data.spec, **PATIENT)
    learned = method.generate.learned(clients)
    of_pool = method.prepare(clients).pool
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)
    want = (clients.windows[learned] - mean) / std
    np.testing.assert_allclose(of_pool.windows, want, rtol=1e-5, atol=1e-5)
    assert 0 < learned.sum() < clients.mask.sum()
    assert methods.privatehub(data.spec, **SMALL).generate.learned is None
