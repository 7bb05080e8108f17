"""Tests of Blinder's target classes and of leakage from its clients' updates."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import attacks, methods
from jaxanon.core import run as core_run
from jaxanon.evaluation import checks
from jaxanon.methods.blinder.blinder import anonymized
from jaxanon.models.classifiers import Classifier

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data():
    return toy.data()


def test_a_share_of_windows_shows_another_class_than_the_predicted(data):
    """The classifier always predicts the second gender; the decoder repeats it."""
    settings = {"anonymization": "probabilistic", "flip_probability": 0.75}
    config = methods.BlinderConfig(**settings)
    says = lambda logits: types.SimpleNamespace(
        apply=lambda variables, x: jnp.tile(jnp.array(logits), (len(x), 1))
    )
    judges = {"activity": says([0.0, 1.0, 0.0]), "gender": says([0.0, 1.0])}
    nets = types.SimpleNamespace(
        encode=lambda params, x: (jnp.zeros((len(x), 3)), jnp.zeros((len(x), 3))),
        decode=lambda params, z, private, public: jnp.broadcast_to(
            private[0][:, 1, None, None], (len(z), 16, 2)
        ),
    )
    params = {"classifiers": {"activity": {}, "gender": {}}}
    windows = np.repeat(data.test.windows[:1], 4000, axis=0)
    given = params, windows, data.spec, config, nets, judges
    safe = anonymized(jax.random.key(0), *given)
    shown = (safe[:, 0, 0] - data.spec.mean[0]) / data.spec.std[0]
    assert abs(float(shown.mean()) - 0.25) < 0.03  # 4.4 standard deviations.
    for build in (methods.fed_blinder, methods.kd_blinder):
        built = build(data.spec, **settings, hidden_sizes=(4,), latent_dim=2)
        judged = jax.eval_shape(built.init, jax.random.key(0)).params["classifiers"]
        assert (
            set(judged) == {"activity", "gender"}
            and built.config.flip_probability == 0.75
        )


@pytest.mark.parametrize("build", [methods.blinder, methods.fed_blinder])
def test_what_can_be_rebuilt_from_is_the_public_classifier_s_gradient(data, build):
    few = {"hidden_sizes": (4,), "latent_dim": 2}
    method = build(data.spec, **few)
    state = jax.jit(method.init)(jax.random.key(0))
    run = core_run.Run(method, state, data.spec, None, [], {})
    checks.check_hooks(run, ("inversion",))
    loss_fn, params = run.client_loss()
    assert params is state.params["classifiers"]["activity"]
    window = jnp.ones((16, 2))
    logits = Classifier(3).apply({"params": params}, window[None])[0]
    for label in range(3):
        by_hand = jax.nn.logsumexp(logits) - logits[label]
        loss = loss_fn(params, window, jax.nn.one_hot(label, 3))
        assert float(loss) == pytest.approx(float(by_hand), rel=1e-5)
    window = jax.random.normal(jax.random.key(1), (16, 2))
    sent = jax.grad(loss_fn)(params, window, jax.nn.one_hot(1, 3))
    rebuilt = attacks.dense_input(sent, 32).reshape(2, 16)  # By channel.
    np.testing.assert_allclose(rebuilt.T, window, atol=1e-4)
    alone = dataclasses.replace(run, method=methods.orf(data.spec))
    assert alone.client_loss is None  # Central training sends nothing.
    with pytest.raises(ValueError, match=r"'inversion' needs a run .* got 'orf'"):
        checks.check_hooks(alone, ("inversion",))
