"""Tests of PrivateHub's settings after training, and of invalid sampling requests."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.core.method import Generation
from jaxanon.core.run import Run
from jaxanon.datasets.spec import take
from jaxanon.training import run_folder, trainer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_plainly")]

DATA = toy.data()
SMALL = {
    "widths": (4,),
    "heads": 1,
    "num_train_timesteps": 20,
    "num_inference_steps": 5,
}
LEAST = {"classifier_filters": (4,), "classifier_features": 4}


def test_suspicion_is_chosen_anew_where_there_is_something_to_hide():
    for hide in (), ("b",):
        method = methods.privatehub(DATA.spec, **SMALL | LEAST, classes_to_hide=hide)
        state = jax.eval_shape(method.init, jax.random.key(0))
        run = Run(method, state, DATA.spec, None, [], {})
        if hide:
            adjusted = run.adjusted(hide_threshold=0.25)
            assert float(adjusted.state.hyper["hide_threshold"]) == 0.25
            with pytest.raises(ValueError, match=r"hide_threshold must be in \[0, 1\)"):
                run.adjusted(hide_threshold=1.0)
        else:
            with pytest.raises(
                ValueError,
                match=r"one of .*guidance_scale', .*\] for this run .*hide_threshold",
            ):
                run.adjusted(hide_threshold=0.25)


def test_how_far_and_in_how_many_steps_is_chosen_anew():
    method = methods.privatehub(DATA.spec, **SMALL | LEAST, strength=0.5)
    state = method.init(jax.random.key(0))
    run = Run(method, state, DATA.spec, None, [], {})
    told = {"strength": 1.0, "num_inference_steps": 2, "guidance_scale": 3.0}
    far = run.adjusted(**told)
    built = methods.privatehub(DATA.spec, **SMALL | LEAST | told)
    given = jax.random.key(1), DATA.test.windows[:8]
    want = Run(built, built.init(jax.random.key(0)), DATA.spec, None, [], {})
    np.testing.assert_array_equal(far.anonymize(*given), want.anonymize(*given))
    assert run.method.config.strength == 0.5  # It is unchanged.
    assert not np.allclose(far.anonymize(*given), run.anonymize(*given))
    with pytest.raises(ValueError, match=r"strength must be in \[0, 1\], got 1.5"):
        run.adjusted(strength=1.5)
    with pytest.raises(TypeError, match="num_inference_steps must be whole, got 2.5"):
        run.adjusted(num_inference_steps=2.5)


def test_a_class_that_was_never_seen_is_not_made():
    method = methods.privatehub(DATA.spec, **SMALL | LEAST)
    clients = datasets.by_client(DATA.train)
    activity = clients.labels["activity"]
    few = clients._replace(mask=clients.mask & (activity != 1))
    data = method.prepare(few)
    state = method.init(jax.random.key(0))
    params = state.params | {"statistics": data.statistics}
    run = Run(method, state._replace(params=params), DATA.spec, None, [], {})
    ask = lambda *classes: run.sample(jax.random.key(1), {"activity": classes})
    with pytest.raises(ValueError, match=r"one of \['a', 'c'\], got \['b'\]"):
        ask(0, 1)
    assert ask(0, 2).shape == (2, 16, 2)
    with pytest.raises(
        ValueError, match=r"avoid must have keys in \['activity', 'gender'\]"
    ):
        run.sample(jax.random.key(1), {"activity": [0]}, avoid={"size": [0]})
    with pytest.raises(ValueError, match=r"labels\['gender'\] must be .*1"):
        run.sample(jax.random.key(1), {"activity": [0]}, avoid={"gender": [0, 1]})
    fresh = Run(method, state, DATA.spec, None, [], {})
    with pytest.raises(ValueError, match="no training windows yet; train it first"):
        fresh.sample(jax.random.key(1), {"activity": [0]})


def without(**classes):
    """Returns data whose training windows lack those classes."""
    seen = np.ones(len(DATA.train.windows), bool)
    for name, label in classes.items():
        seen &= DATA.train.labels[name] != label
    return DATA._replace(train=take(DATA.train, seen))


def test_classes_that_were_never_seen_are_neither_made_nor_avoided():
    """Includes private classes; the run records classes without training windows."""
    data = without(activity=1, gender=1)
    run = trainer.train(methods.privatehub(DATA.spec, **SMALL | LEAST), data, epochs=1)
    assert run.config["data"]["unseen"] == {"activity": ["b"], "gender": ["m"]}
    ask = functools.partial(run.sample, jax.random.key(1))
    for classes, avoid, message in (
        (
            {"activity": [0], "gender": [1]},
            {},
            r"gender must be one of .*\['f'\], got \['m'\]",
        ),
        (
            {"activity": [0]},
            {"gender": [1]},
            r"gender must be one of .*\['f'\], got \['m'\]",
        ),
        (
            {"activity": [0]},
            {"activity": [1]},
            r"activity must be one of .*\['a', 'c'\], got \['b'\]",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            ask(classes, avoid=avoid)
    made = ask({"activity": [0], "gender": [0]}, avoid={"activity": [2]})
    assert made.shape == (1, 16, 2)
    whole = run_folder.describe(run.method, DATA, run.state, epochs=1, seed=0)
    assert "unseen" not in whole["data"]


def test_other_generators_know_of_them_too():
    data, method = (
        without(gender=1),
        methods.cgan(DATA.spec, widths=(4, 2), latent_dim=2),
    )
    run = trainer.train(method, data, epochs=1)
    with pytest.raises(ValueError, match=r"gender must be one of .*, got \['m'\]"):
        run.sample(jax.random.key(1), {"activity": [0], "gender": [1]})


def test_where_noise_guards_training_nobody_is_told_which_classes_occur():
    data = without(gender=1)
    settings = {"noise_multiplier": 1.0, "max_examples": 200}
    method = methods.privatehub(DATA.spec, **SMALL | LEAST | settings)
    state = jax.eval_shape(method.init, jax.random.key(0))._replace(hyper={})
    told = run_folder.describe(method, data, state, epochs=1, seed=0)
    assert "unseen" not in told["data"]


def test_the_last_part_of_what_is_made_compiles_to_nothing_of_its_own(monkeypatch):
    monkeypatch.setattr("jaxanon.core.run.BATCH", 6)
    traces = []

    def made(key, state, classes, samples=None, avoid=None):
        traces.append(len(classes["activity"]))
        shape = len(classes["activity"]), 16, 2
        return jnp.zeros(shape) + classes["activity"][:, None, None]

    method = methods.privatehub(DATA.spec, **SMALL | LEAST)
    method = method._replace(generate=Generation(made))
    run = Run(method, method.init(jax.random.key(0)), DATA.spec, None, [], {})
    for number in (7, 8, 12, 19):
        labels = np.arange(number) % 3
        found = run.sample(jax.random.key(0), {"activity": labels})
        np.testing.assert_array_equal(found[:, 3, 1], labels)
    assert traces == [6]


def test_another_solver_may_be_chosen_after_training():
    method = methods.privatehub(DATA.spec, **SMALL | LEAST)
    run = Run(method, method.init(jax.random.key(0)), DATA.spec, None, [], {})
    given = jax.random.key(1), DATA.test.windows[:8]
    other = run.adjusted(sampler="dpmpp_2m")
    assert (other.method.config.sampler, run.method.config.sampler) == (
        "dpmpp_2m",
        "ddim",
    )
    far = np.abs(other.anonymize(*given) - run.anonymize(*given)).max()
    # With one step the solvers have no history: both are DDIM.
    one = [
        each.adjusted(num_inference_steps=1).anonymize(*given) for each in (run, other)
    ]
    np.testing.assert_allclose(*one, rtol=1e-4, atol=1e-4)
    assert far > 100 * np.abs(one[0] - one[1]).max()
    with pytest.raises(ValueError, match="sampler must be one of"):
        run.adjusted(sampler="euler")
