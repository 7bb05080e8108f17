"""Runs of version 0.1 open under the current names."""

import contextlib
import json

import jax
import numpy as np
import pytest
import toy

from jaxanon import learners, open_run, train
from jaxanon.core import aliases, registry
from jaxanon.training import checkpoint

SMALL = {"model": "mlp", "hidden_sizes": (3,), "local_steps": 1, "batch_size": 8}
OLD = {
    "learning_rate": "step_size",
    "hidden_sizes": "hidden",
    "batch_size": "batch",
    "client_fraction": "cohort",
}


@pytest.mark.parametrize("kind", ["anonymizer", "learner", "controller"])
def test_every_new_name_is_a_setting(kind):
    """A name that no method has would be a typo."""
    known = {
        field
        for each in ("anonymizer", "learner", "controller")
        for name in registry.names(each)
        for field in registry.entry(name, each).config.__dataclass_fields__
    }
    for old, new in aliases.SETTINGS.items():
        assert set(new) <= known, old
    for name in registry.names(kind):
        settings = registry.entry(name, kind).config.__dataclass_fields__
        assert aliases.settings(dict.fromkeys(settings), settings) == dict.fromkeys(
            settings
        )


def test_settings_have_one_new_name_each():
    """No method has two settings that share an old name."""
    for kind in ("anonymizer", "learner", "controller"):
        for name in registry.names(kind):
            settings = set(registry.entry(name, kind).config.__dataclass_fields__)
            for old, new in aliases.SETTINGS.items():
                if old not in settings:
                    assert len(settings & set(new)) <= 1, (name, old)


def test_a_run_of_0_1_opens_with_the_same_bits(tmp_path):
    data = toy.data()
    method = learners.build("fedavg", data.spec, **SMALL)
    run = train(method, data, epochs=1, output_dir=tmp_path / "run")
    path = tmp_path / "run" / "config.json"
    config = json.loads(path.read_text())
    for part in ("settings", "hyper"):
        config[part] = {OLD.get(k, k): value for k, value in config[part].items()}
    config["architecture"] = [
        each.replace("learning_rate", "step_size") for each in config["architecture"]
    ]
    config |= {"version": "0.1.0", "spec": config["spec"] | {"split": "time block"}}
    path.write_text(json.dumps(config))
    hyper = {OLD[name]: value for name, value in run.state.hyper.items()}
    old = run.state._replace(hyper=hyper)
    with contextlib.closing(checkpoint.Checkpoints(tmp_path / "run")) as saved:
        saved.save(old)

    again = open_run(tmp_path / "run")
    assert again.method.config == method.config
    assert again.spec.split == "time_block"
    jax.tree.map(np.testing.assert_array_equal, again.state, run.state)
    with pytest.raises(ValueError, match=r"to resume, got one of 0\.1\.0"):
        train(method, data, epochs=2, output_dir=tmp_path / "run", resume=True)


def test_hyper_parameters_inside_a_state_are_renamed_too():
    """PFDRL's states hold those of its agents; other leaves keep their names."""
    leaves = [".control.hyper['epsilon']: float32[2]", ".params['epsilon']: float32[]"]
    config = {"method": "pfdrl", "settings": {}, "data": {}, "spec": {}}
    config |= {"architecture": leaves}
    known = registry.entry("pfdrl").config.__dataclass_fields__
    assert aliases.run_config(config, known)["architecture"] == [
        ".control.hyper['exploration_epsilon']: float32[2]",
        leaves[1],
    ]
