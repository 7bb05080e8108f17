"""End-to-end tests of the federated-averaging variants of Blinder."""

import jax
import numpy as np
import pytest

from jaxanon import datasets, methods
from jaxanon.training import trainer

pytestmark = pytest.mark.slow

SETTINGS = {
    "hidden_sizes": (12,),
    "latent_dim": 3,
    "discriminator_hidden_sizes": (7,),
    "batch_size": 8,
}
HYPER = {"beta": 0.1, "learning_rate": 0.003}


@pytest.mark.parametrize("name", ["fed_blinder", "kd_blinder"])
def test_trains_learns_and_goes_on_where_it_was(data, name, tmp_path):
    method = methods.build(name, data.spec, **SETTINGS, batches=2)
    train = lambda epochs, **more: trainer.train(
        method, data, epochs=epochs, progress=False, hyper=HYPER, **more
    )
    run = train(12)
    assert int(run.state.round) == 12
    train(5, output_dir=tmp_path / "run")
    resumed = train(12, output_dir=tmp_path / "run", resume=True)
    pairs = zip(jax.tree.leaves(run.state), jax.tree.leaves(resumed.state), strict=True)
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
    early, *_, late = (row["losses"] for row in resumed.history)
    assert late["loss"] < early["loss"]
    assert late["activity classifier"] < early["activity classifier"]
    names = {"loss", "reconstruction", "kl", "discriminator", "activity classifier"}
    assert set(late) == names
    safe = run.anonymize(jax.random.key(1), data.test.windows[:9])
    assert safe.shape == (9, 16, 2) and safe.dtype == np.float32
    # In the units of the data; their mean is 10.
    np.testing.assert_allclose(safe.mean(), 10, atol=1)


def test_runs_side_by_side_keep_to_themselves(data):
    method = methods.kd_blinder(data.spec, **SETTINGS, batches=1, local_rounds=1)
    clients = method.prepare(datasets.by_client(data.train))

    def run(seed, gamma):
        key = jax.random.key(seed)
        state = method.init(jax.random.fold_in(key, 0), gamma=gamma)
        return method.update(jax.random.fold_in(key, 1), state, clients)[0].params

    runs = jax.jit(jax.vmap(run))
    member = lambda results, index: jax.tree.map(lambda leaf: leaf[index], results)
    one = runs(np.array([3, 4]), np.float32([0.2, 5.0]))
    two = runs(np.array([4, 3]), np.float32([5.0, 0.9]))
    pairs = zip(
        jax.tree.leaves(member(one, 1)), jax.tree.leaves(member(two, 0)), strict=True
    )
    for mine, again in pairs:
        np.testing.assert_array_equal(mine, again)
    encoders = [member(results, i)["encoder"] for results, i in ((one, 0), (two, 1))]
    weighed = [jax.tree.leaves(encoder)[1] for encoder in encoders]
    assert np.any(weighed[0] != weighed[1])  # Same seed, other gamma.
