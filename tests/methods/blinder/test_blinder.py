"""Tests of Blinder: draws, padding, sweeps, anonymization, personalisation."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.methods.common import client_batches
from jaxanon.methods.common.target_class import ANONYMIZATIONS
from jaxanon.models import autoencoder
from jaxanon.models import blinder as models

SETTINGS = methods.recipes("blinder")["paper"].settings | {
    "hidden_sizes": (12,),
    "latent_dim": 3,
    "query_size": 5,
    "extra": 8,
    "samples_per_class": 20,
    "client_fraction": 0.6,
    "discriminator_steps": 2,
}


@pytest.fixture(scope="module")
def data():
    return toy.data()


@pytest.fixture(scope="module")
def method(data):
    return methods.blinder(data.spec, **SETTINGS)


@pytest.fixture(scope="module")
def prepared(method, data):
    return method.prepare(datasets.by_client(data.train))


@pytest.fixture(scope="module")
def update(method):
    # Compiled once per module; the counter checks it.
    return jax.jit(chex.assert_max_traces(method.update, n=1))


@pytest.mark.slow
def test_a_round_moves_every_group_and_counts(method, prepared, update):
    state = method.init(jax.random.key(0))
    after, info = update(jax.random.key(1), state, prepared)
    assert int(after.round) == 1
    for group, before in state.params.items():
        moved = jax.tree.map(lambda a, b: jnp.any(a != b), before, after.params[group])
        assert all(jax.tree.leaves(moved)), group
    expected = {"loss", "reconstruction", "kl", "discriminator", "activity classifier"}
    assert set(info) == expected


def test_same_key_same_round_and_another_key_another(method, prepared, update):
    state = method.init(jax.random.key(0))
    one, _ = update(jax.random.key(1), state, prepared)
    two, _ = update(jax.random.key(1), state, prepared)
    other, _ = update(jax.random.key(2), state, prepared)
    chex.assert_trees_all_equal(one, two)
    differs = jax.tree.map(lambda a, b: jnp.any(a != b), one.params, other.params)
    assert any(jax.tree.leaves(differs))


def test_hyper_parameters_count_and_compile_nothing(method, prepared, update):
    # ``update`` was traced for this shape; the counter detects another trace.
    default = method.init(jax.random.key(0))
    tuned = method.init(jax.random.key(0), gamma=5.0, server_learning_rate=0.01)
    one, _ = update(jax.random.key(1), default, prepared)
    two, _ = update(jax.random.key(1), tuned, prepared)
    differs = jax.tree.map(lambda a, b: jnp.any(a != b), one.params, two.params)
    assert all(jax.tree.leaves(differs["encoder"]))
    with pytest.raises(
        TypeError, match=r"hyper-parameters must be among .* got \['gama'\]"
    ):
        method.init(jax.random.key(0), gama=1.0)


@pytest.mark.slow
def test_a_padded_client_changes_nothing(data, method, prepared, update):
    clients = datasets.by_client(data.train)
    longer = jax.tree.map(
        lambda rows: np.pad(rows, [(0, 0), (0, 9)] + [(0, 0)] * (rows.ndim - 2)),
        clients,
    )
    spoiled = longer._replace(
        windows=np.where(longer.mask[..., None, None], longer.windows, 55)
    )
    padded = method.prepare(spoiled)
    state = method.init(jax.random.key(0))
    one, _ = update(jax.random.key(1), state, prepared)
    two, _ = jax.jit(method.update)(jax.random.key(1), state, padded)
    chex.assert_trees_all_close(one, two, rtol=1e-5, atol=1e-7)


@pytest.mark.slow
def test_listed_batches_are_the_same_windows_with_other_noise(data, prepared):
    @jax.jit
    def draw(seed, rows_seed):
        keys = jax.random.key(seed), jax.random.key(rows_seed)
        options = 3, prepared, data.spec, 2, 20, 50
        return client_batches.draw_batch(keys[0], *options, rows_key=keys[1])

    one, two, other = draw(0, 2), draw(1, 2), draw(0, 1)
    for name in ("windows", "public", "private", "weights"):
        chex.assert_trees_all_equal(getattr(one, name), getattr(two, name))
    for name in ("noise", "renoise", "target"):
        same = jax.tree.leaves(getattr(one, name))[0]
        assert np.any(same != jax.tree.leaves(getattr(two, name))[0])
    assert np.any(one.windows != other.windows)


def test_draws_agree_with_their_labels_and_with_one_client(data, prepared):
    draw = jax.jit(
        lambda key: client_batches.draw_batch(key, 3, prepared, data.spec, 2, 20, 400)
    )
    batch = draw(jax.random.key(0))
    # Client 3 has gender 1, amplitude 6; SMOTE windows are mixtures within a class.
    assert jnp.all(batch.private[0] == jnp.array([[0.0, 1.0]]))
    assert jnp.all(batch.shadow[0] == jnp.array([[1.0, 0.0]]))
    np.testing.assert_allclose(batch.public.mean(0), 1 / 3, atol=0.08)
    mean, std = np.float32(data.spec.mean), np.float32(data.spec.std)
    waves = np.asarray(batch.windows) * std + mean - 10
    spectrum = np.abs(np.fft.rfft(waves, axis=1)).sum(2)[:, 1:4]
    np.testing.assert_array_equal(spectrum.argmax(1), np.argmax(batch.public, 1))


@pytest.mark.slow
def test_joint_classes_keep_private_labels_that_vary_within_a_client(data):
    rng = np.random.default_rng(0)
    labels = dict(data.train.labels)
    labels["gender"] = rng.integers(0, 2, len(labels["gender"])).astype(np.int32)
    windows = data.train.windows * 0 + labels["gender"][:, None, None]
    clients = datasets.by_client(datasets.Windows(windows.astype(np.float32), labels))
    spec = data.spec.from_json(data.spec.to_json())
    prepared = client_batches.prepare(spec, clients, 3)
    draw = jax.jit(
        lambda key: client_batches.draw_batch(key, 0, prepared, spec, 2, 100, 64)
    )
    batch = draw(jax.random.key(1))
    shown = batch.windows[:, 0, 0] * spec.std[0] + spec.mean[0]
    np.testing.assert_allclose(shown, batch.private[0][:, 1], atol=1e-4)


def test_other_class_is_uniform_and_never_the_same():
    labels = jnp.tile(jnp.arange(3), 2000)
    other = client_batches.other_class(jax.random.key(0), labels, 3)
    assert not jnp.any(other == labels)
    for label in range(3):
        counts = np.bincount(other[labels == label], minlength=3)
        rest = np.delete(counts, label)
        assert abs(rest[0] - 1000) < 100  # 4.5 standard deviations.


@pytest.mark.slow
def test_stochastic_shows_every_class_and_deterministic_does_not_change(data):
    windows = data.test.windows[:200]
    for kind in ANONYMIZATIONS:
        method = methods.blinder(data.spec, **SETTINGS | {"anonymization": kind})
        state = method.init(jax.random.key(0))
        anonymize = jax.jit(method.anonymize)
        one = anonymize(jax.random.key(1), state, windows)
        two = anonymize(jax.random.key(2), state, windows)
        assert one.shape == windows.shape and one.dtype == jnp.float32
        same = bool(jnp.all(one == two))
        assert same == (kind == "deterministic")
        judges = set(state.params["classifiers"])
        extra = set() if kind == "stochastic" else {"gender"}
        assert judges == {"activity"} | extra


@pytest.mark.slow
def test_windows_come_back_in_their_own_units(data, method):
    # A decoder that returns 0 gives the training mean.
    state = method.init(jax.random.key(0))
    silent = jax.tree.map(jnp.zeros_like, state.params["decoder"])
    state = state._replace(params=state.params | {"decoder": silent})
    safe = method.anonymize(jax.random.key(1), state, data.test.windows[:2])
    np.testing.assert_allclose(safe[0, 0], data.spec.mean, rtol=1e-5)


@pytest.mark.slow
def test_guided_adversaries_see_the_true_class_and_the_judge_the_public_one(data):
    more = {"guided": True, "discriminator_rounds": 2, "ema_decay": 0.9}
    method = methods.blinder(data.spec, **SETTINGS | more)
    prepared = method.prepare(datasets.by_client(data.train))
    state = method.init(jax.random.key(0), discriminator_learning_rate=0.0)
    assert set(state.hyper) >= {"utility", "output_discriminator_weight"}
    after, info = jax.jit(method.update)(jax.random.key(1), state, prepared)
    # Discriminators with learning rate 0 do not move; the others train against them.
    for group in ("discriminators", "critics"):
        chex.assert_trees_all_equal(after.params[group], state.params[group])
    assert {"utility", "critic"} <= set(info)
    # Anonymization uses the averaged parameters.
    windows = data.test.windows[:4]
    by_mean = method.anonymize(jax.random.key(2), after, windows)
    other = after._replace(average=after.params)
    by_last = method.anonymize(jax.random.key(2), other, windows)
    assert jnp.any(by_mean != by_last)


@pytest.mark.slow
def test_guided_terms_by_hand():
    net = models.networks(8, 2, [2], latent=3, hidden=(9,))
    params = jax.jit(net.init, static_argnums=(1, 2, 3))(jax.random.key(0), 8, 2, 4)
    critic, keys = models.Critic(2), jax.random.split(jax.random.key(1), 8)
    start = jax.jit(critic.init)(keys[0], jnp.zeros((1, 8, 2)))
    params["critics"] = [start["params"]]
    hot = lambda key, n: jax.nn.one_hot(jax.random.randint(key, (5,), 0, n), n)
    batch = models.BlinderBatch(
        jax.random.normal(keys[1], (5, 8, 2)),
        hot(keys[2], 4),
        (hot(keys[3], 2),),
        jnp.ones(5),
        jax.random.normal(keys[4], (5, 3)),
        (hot(keys[5], 2),),
        jax.random.normal(keys[6], (10, 3)),
        (hot(keys[7], 2),),
    )
    scale = models.LossScale(0.5, 3.0, 0.25)
    judge = lambda params, windows: windows[:, :2].reshape(5, 4)
    objective = models.guided_objective(
        net, [critic], judge, scale, models.GuideScale(7.0, 11.0)
    )
    joint = models.joint_objective(net, scale)
    alone = models.adversary_objective(net, [critic])

    @jax.jit
    def both(params):
        loss = lambda params: objective.loss_fn(params, batch)
        (total, info), grads = jax.value_and_grad(loss, has_aux=True)(params)
        own = jax.grad(lambda params: alone.loss_fn(params, batch)[0])(params)
        return total, joint.loss_fn(params, batch)[0], info, grads, own

    @jax.jit
    def by_hand(params):
        z = autoencoder.sample(*net.encode(params, batch.windows), batch.noise)
        safe = net.decode(params, z, batch.target, batch.public)
        seen = critic.apply({"params": params["critics"][0]}, safe)
        return judge(None, safe), seen

    total, base, info, grads, own = both(params)
    judged, seen = by_hand(params)
    entropy = lambda logits, y: -np.sum(y * jax.nn.log_softmax(logits), -1).mean()
    utility, seen = entropy(judged, batch.public), entropy(seen, batch.private[0])
    np.testing.assert_allclose(total, base + 7 * utility - 11 * seen + seen, rtol=1e-5)
    np.testing.assert_allclose(info["utility"], utility, rtol=1e-5)
    # The critic trains to infer the class, the autoencoder to prevent it.
    chex.assert_trees_all_close(grads["critics"], own["critics"], rtol=1e-4, atol=1e-7)
    assert not any(jnp.any(leaf) for leaf in jax.tree.leaves(own["decoder"]))


@pytest.mark.slow
def test_personalisation_trains_on_from_the_shared_state(data, method):
    alone = jax.tree.map(lambda rows: rows[:1], datasets.by_client(data.train))
    state = method.init(jax.random.key(0))
    # Another number of rounds does not recompile.
    method = method._replace(update=chex.assert_max_traces(method.update, n=1))
    own, info = methods.personalise(
        method, jax.random.key(1), state, alone, num_rounds=60
    )
    _, first = methods.personalise(
        method, jax.random.key(1), state, alone, num_rounds=1
    )
    assert int(own.round) == 60 and int(state.round) == 0
    assert info["activity classifier"] < first["activity classifier"]
    with pytest.raises(ValueError, match="num_rounds must be >= 1, got 0"):
        methods.personalise(method, jax.random.key(1), state, alone, num_rounds=0)


def test_says_what_was_wrong(data):
    with pytest.raises(ValueError, match="method must be one of .*'blinder'.* got 'x'"):
        methods.build("x", data.spec)
    clients = datasets.by_client(data.train)
    shorter = clients._replace(windows=clients.windows[:, :, :5])
    with pytest.raises(ValueError, match=r"clients, n, 16, 2\] .* got shape"):
        methods.blinder(data.spec).prepare(shorter)
    empty = clients._replace(mask=clients.mask & False)
    with pytest.raises(ValueError, match=r"clients \[0, 1, 2, 3, 4\] have no windows"):
        methods.blinder(data.spec).prepare(empty)
