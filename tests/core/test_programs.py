"""Training in 32 bits when JAX uses 64."""

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

import jaxanon as ja
from jaxanon import learners, methods
from jaxanon.training import trainer


@pytest.mark.slow
@pytest.mark.parametrize(
    ("room", "name", "settings"),
    [
        (learners, "fedavg", {"model": "mlp", "hidden_sizes": (4,), "local_steps": 1}),
        (methods, "orf", {}),
    ],
)
def test_64_bits_change_nothing(room, name, settings):
    data, found = toy.data(), []
    for wide in (False, True):
        with jax.enable_x64(wide):
            method = room.build(name, data.spec, **settings)
            run = ja.train(method, data, epochs=1, progress=False)
            if room is methods:
                told = run.anonymize(jax.random.key(1), data.test.windows)
            else:
                told = ja.evaluate(run, data)["mean"]
            # Outside it is unchanged.
            assert jnp.ones(1).dtype == (np.float64 if wide else np.float32)
        found.append((run.state, told))
    chex.assert_trees_all_equal(*found)


@pytest.mark.slow
def test_warnings_of_training_are_of_who_called_it(monkeypatch):
    spec = toy.data().spec
    small = {"model": "mlp", "hidden_sizes": (4,), "max_rounds": 1}
    learner = learners.build("dp_fedavg", spec, **small)
    monkeypatch.setattr(trainer, "check_data", lambda *_: 1 / 0)  # The next one.
    with pytest.warns(
        UserWarning, match="at most 1, the number within the privacy budget"
    ) as told:
        with pytest.raises(ZeroDivisionError):
            ja.train(learner, None, epochs=2)
    assert told[0].filename == __file__
