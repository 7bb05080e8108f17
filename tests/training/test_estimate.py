"""The announcement of a training's duration."""

import jax
import numpy as np
import toy

from jaxanon import learners, train
from jaxanon.training import estimate


def test_it_is_printed_and_changes_no_bit(monkeypatch, capsys):
    """The timed rounds run on a copy, so the result is that of a silent training."""
    monkeypatch.setattr(estimate, "MIN_ROUNDS", 2)
    data = toy.data(per_subject=12)
    small = {"model": "mlp", "hidden_sizes": (3,), "local_steps": 1, "batch_size": 8}
    method = learners.build("fedavg", data.spec, **small)
    shown = train(method, data, epochs=2, progress=True)
    assert "Training takes about" in capsys.readouterr().out
    silent = train(method, data, epochs=2, progress=False)
    assert "Training takes about" not in capsys.readouterr().out
    jax.tree.map(np.testing.assert_array_equal, shown.state, silent.state)


def test_a_short_training_has_no_estimate(capsys):
    """Below ``MIN_ROUNDS`` the timed rounds would take longer than they help."""
    data = toy.data(per_subject=12)
    method = learners.build("fedavg", data.spec, model="mlp", hidden_sizes=(3,))
    train(method, data, epochs=1, progress=True)
    assert "Training takes about" not in capsys.readouterr().out
