"""What of PrivateHub may be chosen after training, and what cannot be sampled."""

import jax
import numpy as np
import pytest
import toy

from jaxanon import datasets, methods
from jaxanon.run import Run

pytestmark = pytest.mark.long

DATA = toy.data()
SMALL = {"widths": (4,), "heads": 1, "num_steps": 20, "sampling_steps": 5}
LEAST = {"classifier_filters": (4,), "classifier_features": 4}


def test_suspicion_is_chosen_anew_where_there_is_something_to_hide():
    for hide in (), ("b",):
        method = methods.privatehub(DATA.spec, **SMALL | LEAST, hide=hide)
        state = jax.eval_shape(method.init, jax.random.key(0))
        run = Run(method, state, DATA.spec, None, [], {})
        if hide:
            adjusted = run.adjusted(suspicion=0.25)
            assert float(adjusted.state.hyper["suspicion"]) == 0.25
            with pytest.raises(ValueError, match="suspicion must be < 1, got 1.0"):
                run.adjusted(suspicion=1.0)
        else:
            with pytest.raises(
                ValueError, match=r"told .*guidance', .*\] anew, .*suspicion"
            ):
                run.adjusted(suspicion=0.25)


def test_how_far_and_in_how_many_steps_is_chosen_anew():
    method = methods.privatehub(DATA.spec, **SMALL | LEAST, strength=0.5)
    state = method.init(jax.random.key(0))
    run = Run(method, state, DATA.spec, None, [], {})
    told = {"strength": 1.0, "sampling_steps": 2, "guidance": 3.0}
    far = run.adjusted(**told)
    built = methods.privatehub(DATA.spec, **SMALL | LEAST | told)
    given = jax.random.key(1), DATA.test.windows[:8]
    want = Run(built, built.init(jax.random.key(0)), DATA.spec, None, [], {})
    np.testing.assert_array_equal(far.anonymize(*given), want.anonymize(*given))
    assert run.method.config.strength == 0.5  # It is as it was.
    assert not np.allclose(far.anonymize(*given), run.anonymize(*given))
    with pytest.raises(ValueError, match="strength must be <= 1, got 1.5"):
        run.adjusted(strength=1.5)
    with pytest.raises(TypeError, match="sampling_steps must be whole, got 2.5"):
        run.adjusted(sampling_steps=2.5)


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
    with pytest.raises(ValueError, match=r"of \['b'\] .* no .*; ask for \['a', 'c'\]"):
        ask(0, 1)
    assert ask(0, 2).shape == (2, 16, 2)
    with pytest.raises(ValueError, match=r"avoid must be of \['activity', 'gender'\]"):
        run.sample(jax.random.key(1), {"activity": [0]}, avoid={"size": [0]})
    with pytest.raises(ValueError, match=r"labels\['gender'\] must be .*1"):
        run.sample(jax.random.key(1), {"activity": [0]}, avoid={"gender": [0, 1]})
    fresh = Run(method, state, DATA.spec, None, [], {})
    with pytest.raises(ValueError, match="no training window; train it first"):
        fresh.sample(jax.random.key(1), {"activity": [0]})
