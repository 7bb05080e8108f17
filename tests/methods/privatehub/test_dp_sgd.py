"""Tests of PrivateHub with DP-SGD: the clipped sum by hand, noise and guarantee."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from plain_denoiser import plain_denoiser

import jaxanon as ja
from jaxanon import datasets, methods
from jaxanon.cli import app
from jaxanon.core.method import Incompatible
from jaxanon.core.programs import rounds_program
from jaxanon.methods.common import generator, pool
from jaxanon.methods.privatehub import data as privatehub_data
from jaxanon.methods.privatehub import dp_sgd, networks, sampling
from jaxanon.methods.privatehub.config import PrivateHubConfig, guarantee_of
from jaxanon.privacy import SampledGaussian, epsilon_spent, ledger
from jaxanon.sweeps import space

SMALL = {"widths": (4,), "heads": 2, "batch_size": 32, "num_train_timesteps": 20}
SMALL |= {"num_inference_steps": 5, "max_examples": 160, "delta": 1e-3}
SMALL |= {"classifier_filters": (64,), "classifier_features": 8}
NOISY = SMALL | {"noise_multiplier": 1.0}


def nets_of(spec, **settings):
    return networks.networks(spec, PrivateHubConfig(**(NOISY | settings)))


@pytest.fixture(scope="module")
def gradient(data):
    """Returns ``(batch, clip_norm, noise_multiplier) -> (grads, info)`` and nets."""
    with plain_denoiser():
        nets = nets_of(data.spec, classifier_filters=(64, 64))
    lots = guarantee_of(nets.config).lots
    component = dp_sgd.learning(nets, lots)
    params = jax.jit(nets.init)(jax.random.key(1))
    moving = {group: params[group] for group in component.groups}
    program = jax.jit(lambda *given: component.gradient_fn(jax.random.key(2), *given))

    def gradient(batch, **hyper):
        hyper = {
            "clip_norm": 1.0,
            "noise_multiplier": 0.0,
            "condition_dropout": 0.1,
        } | hyper
        hyper = {name: jnp.float32(value) for name, value in hyper.items()}
        return program(moving, hyper, batch)

    prepared = privatehub_data.prepare(nets, datasets.by_client(data.train))
    draw = jax.jit(lambda key: privatehub_data.lot(nets, key, prepared, lots))
    batch = draw(jax.random.key(3))
    return gradient, nets, moving, batch, lots


def flat(tree):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def test_it_is_the_sum_of_each_window_s_clipped_gradient(gradient):
    """Compares with plain gradients of one window after another."""
    gradient, nets, moving, batch, lots = gradient
    chosen = [0, 1, 33, 40]  # In both parts of the batch.
    few = batch._replace(real=np.isin(np.arange(len(batch.real)), chosen))
    assert dp_sgd.PART < len(batch.real) < 2 * dp_sgd.PART + 40
    learn_key, _ = jax.random.split(jax.random.key(2))
    draw = jax.jit(functools.partial(dp_sgd._example, nets))
    x_t, wanted, t, told, windows, labels = draw(learn_key, jnp.float32(0.1), few)

    @jax.jit
    def alone(number):
        one = lambda leaf: leaf[number][None]

        def loss(moving):
            said = nets.denoise(
                moving["denoiser"], one(x_t), one(t), jax.tree.map(one, told)
            )
            total = jnp.mean((said - one(wanted)) ** 2)
            for name in ("activity", "gender"):
                logits, _ = generator.classify(nets, moving, name, one(windows))
                total += optax.softmax_cross_entropy_with_integer_labels(
                    logits, one(labels[name])
                )[0]
            return total

        return jax.value_and_grad(loss)(moving)

    losses, gradients = zip(*(alone(n) for n in chosen), strict=True)
    gradients = [flat(one) for one in gradients]
    norms = [np.linalg.norm(one) for one in gradients]
    bound = float(np.mean(sorted(norms)[1:3]))  # Two exceed the clip norm.
    want = sum(
        one * min(1, bound / norm) for one, norm in zip(gradients, norms, strict=True)
    )
    found, info = gradient(few, clip_norm=bound)
    np.testing.assert_allclose(
        flat(found), want / lots.expected_batch_size, rtol=1e-3, atol=1e-6
    )
    assert float(info["loss"]) == pytest.approx(np.mean(losses), rel=1e-4)
    assert float(info["clipped"]) == 0.5


def test_the_noise_is_the_multiplier_times_the_clip_norm(gradient):
    gradient, _, _, batch, lots = gradient
    plain, _ = gradient(batch, clip_norm=0.5)
    noisy, _ = gradient(batch, clip_norm=0.5, noise_multiplier=3.0)
    noise = lots.expected_batch_size * (flat(noisy) - flat(plain))
    assert len(noise) > 5000  # Its std is known to 1 in 100, and is 1.5.
    assert noise.std() == pytest.approx(1.5, rel=0.04)
    assert abs(noise.mean()) < 0.1


def test_one_window_more_moves_a_lot_s_sum_by_the_clip_norm_at_most(gradient):
    gradient, _, _, batch, lots = gradient
    first = np.arange(len(batch.real)) == 0
    with_it, without = batch.real | first, batch.real & ~first
    ends = [gradient(batch._replace(real=real))[0] for real in (with_it, without)]
    moved = lots.expected_batch_size * np.linalg.norm(flat(ends[0]) - flat(ends[1]))
    assert 0.01 < moved <= 1.0001


def test_what_is_told_of_a_window_is_of_no_other(data):
    """Without noise, the condition's class statistics depend on other windows."""
    higher = 0.1 * data.train.labels["subject"].astype(np.float32)[:, None, None]
    clients = datasets.by_client(
        data.train._replace(windows=data.train.windows + higher)
    )
    fewer = clients._replace(mask=clients.mask & (np.arange(5) < 3)[:, None])
    apart = {}
    for noise in (0.0, 1.0):
        nets = nets_of(data.spec, noise_multiplier=noise)
        told = []
        for some in (clients, fewer):
            prepared = privatehub_data.prepare(nets, some)
            labels = {name: x[:9] for name, x in prepared.pool.labels.items()}
            drawn = pool.Drawn(prepared.pool.windows[:9], labels, jnp.arange(9))
            told.append(privatehub_data.to_batch(nets, prepared, drawn))
        leaves = zip(*map(jax.tree.leaves, told), strict=True)
        apart[noise] = max(np.abs(1.0 * one - other).max() for one, other in leaves)
    assert apart[0.0] > 0.05 and apart[1.0] == 0


def test_samples_are_told_no_statistics(data):
    classes = {"activity": jnp.array([2, 0]), "gender": jnp.array([1, 2])}
    shapes = {"center": (3, 2), "spread": (3, 2), "mean": (3, 4), "root": (3, 4, 4)}
    params = {"statistics": {name: jnp.ones(shape) for name, shape in shapes.items()}}
    told = {}
    for noise in (0.0, 1.0):
        nets = nets_of(data.spec, noise_multiplier=noise)
        given = jax.random.key(0), params, classes
        told[noise] = sampling.draw_conditions(nets, *given)
        assert told[noise].classes is classes
    assert told[0.0].known.all() and not told[1.0].known.any()


def test_every_window_is_in_a_lot_with_the_same_probability(data):
    nets = nets_of(data.spec)
    lots = guarantee_of(nets.config).lots
    prepared = privatehub_data.prepare(nets, datasets.by_client(data.train))
    draw = lambda key: privatehub_data.lot(nets, key, prepared, lots).real.sum()
    sizes = jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(0), 400))
    number = len(data.train.windows)
    q = 32 / 160
    assert np.mean(sizes) == pytest.approx(q * number, abs=1)
    assert np.var(sizes) == pytest.approx(q * (1 - q) * number, rel=0.2)


def test_epsilon_buys_the_noise_of_all_paid_epochs():
    found = guarantee_of(PrivateHubConfig(**SMALL, epsilon=3.0, max_private_epochs=4))
    assert (found.rounds, found.rounds_per_epoch) == (20, 5)
    alone = SampledGaussian(
        noise_multiplier=found.noise_multiplier, sampling_probability=0.2, steps=20
    )
    assert 2.97 < epsilon_spent([alone], 1e-3) <= 3.0
    assert guarantee_of(PrivateHubConfig(**SMALL)) is None
    named = guarantee_of(PrivateHubConfig(**NOISY))
    assert named.rounds is None and named.noise_multiplier == 1.0


@pytest.mark.slow
def test_a_run_says_what_it_spent_and_stops_where_its_budget_ends(
    data, tmp_path, capsys
):
    settings = SMALL | {"epsilon": 4.0, "max_private_epochs": 2}
    method = methods.privatehub(data.spec, **settings)
    train = lambda epochs, **given: ja.train(
        method,
        data,
        epochs=epochs,
        output_dir=tmp_path / "run",
        progress=False,
        **given,
    )
    train(1)
    told = ledger.read(tmp_path / "run")
    assert told["steps"] == 5 and 0 < told["epsilon"] < 3.9
    with pytest.warns(
        UserWarning,
        match=r"at most 2, the number within the privacy budget, got 9; .* Set "
        r"max_private_epochs=9",
    ):
        run = train(9, resume=True)
    assert rounds_program(method.update)._cache_size() == 1  # One compilation for both.
    told = json.loads((tmp_path / "run" / "privacy.json").read_text())
    assert told["rounds"] == {"done": 10, "asked": 10}
    assert told["steps"] == 10 and 3.9 < told["epsilon"] <= 4.0
    assert app.main(["privacy", str(tmp_path / "run")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "The trained generator satisfies epsilon" in shown
    assert "for a training window with its labels more or less" in shown
    assert "Not covered: the seed" in shown and "a person, who has many" in shown
    # The state depends on the data only through the noise.
    assert not any(np.any(x) for x in jax.tree.leaves(run.state.params["statistics"]))
    start = method.init(jax.random.split(jax.random.key(0))[0])
    for group in ("denoiser", "classifiers", "average"):
        both = start.params[group], run.state.params[group]
        pairs = zip(*map(jax.tree.leaves, both), strict=True)
        assert any(np.any(one != other) for one, other in pairs)
    again = ja.open_run(tmp_path / "run").method.guarantee
    assert again == method.guarantee


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        (
            {"classes_to_hide": ("a",)},
            "classes_to_hide cannot be combined with noise: .* omit",
        ),
        ({"patience": 3}, "patience cannot be combined with noise: .* patience to 0"),
        ({"epsilon": 2.0}, "only one of epsilon and noise_multiplier .* got 2 and"),
    ],
)
def test_what_noise_would_not_cover_is_refused(settings, match):
    with pytest.raises(Incompatible, match=match):
        PrivateHubConfig(**NOISY | settings)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"max_examples": None}, "max_examples must be set with noise"),
        ({"max_examples": 31}, "batch_size must be at most max_examples, 31, got 32"),
    ],
)
def test_what_is_refused(settings, match):
    with pytest.raises(ValueError, match=match):
        PrivateHubConfig(**NOISY | settings)


def test_more_windows_than_were_counted_on_are_refused(data):
    nets, number = nets_of(data.spec, max_examples=100), len(data.train.windows)
    with pytest.raises(
        ValueError,
        match=f"at most max_examples, 100, got {number}; set max_examples to",
    ):
        privatehub_data.prepare(nets, datasets.by_client(data.train))


def test_other_noise_than_was_reckoned_with_is_refused(data):
    method = methods.privatehub(data.spec, **NOISY)
    with pytest.raises(
        ValueError, match="noise_multiplier cannot be a hyper-parameter"
    ):
        method.init(jax.random.key(0), noise_multiplier=0.1)


def test_a_delta_that_gives_a_window_away_is_warned_of(data):
    with pytest.warns(UserWarning, match="delta should be well below 1 / 160"):
        methods.privatehub(data.spec, **NOISY | {"delta": 0.01})


def test_a_sweep_compiles_noise_in_and_varies_the_clip_norm(data):
    settings = SMALL | {"noise_multiplier": 1.0}
    plan = functools.partial(space.plan, methods.privatehub, data.spec)
    noise = plan({"noise_multiplier": [1.0, 2.0]}, 1, SMALL)
    found = [group.method.config.noise_multiplier for group in noise.groups]
    assert found == [1.0, 2.0]
    assert all(group.method.guarantee is not None for group in noise.groups)
    (clipped,) = plan({"clip_norm": [1.0, 2.0]}, 1, settings).groups
    assert clipped.hyper == [{"clip_norm": 1.0}, {"clip_norm": 2.0}]
    with pytest.raises(ValueError, match="grid must not name 'noise_multiplier'"):
        space.plan(
            methods.privatehub(data.spec, **settings),
            data.spec,
            {"noise_multiplier": [1.0]},
            1,
            {},
        )
