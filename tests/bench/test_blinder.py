"""Tests of the personalization measurement of Blinder's benchmark."""

import jax
import jax.numpy as jnp
import numpy as np
import toy

from jaxanon import methods
from jaxanon.attacks import RawClassifiers
from jaxanon.core import run as core_run


def test_a_person_s_own_anonymizer_is_judged_before_and_after(bench, monkeypatch):
    """Raw windows are classified as the first class, shifted ones as the second."""
    module, data, rows = bench("blinder.command"), toy.data(), {}
    moves = lambda key, state, windows: windows + state
    method = methods.orf(data.spec)._replace(anonymize=moves)
    run = core_run.Run(method, jnp.float32(0), data.spec, None, [], {})

    def personalise(method, key, state, alone):
        assert len(alone.windows) == 1  # Windows of one person.
        return state + 100, None

    monkeypatch.setattr(module.methods, "personalise", personalise)
    far = lambda windows: windows.mean((1, 2)) > 5
    read = lambda windows: np.stack([~far(windows), far(windows)], 1).astype(np.float32)

    class Report:
        add = staticmethod(lambda name, value, *more: rows.update({name: value}))

    module.personal(Report, "new", run, data, RawClassifiers({"gender": read}, {}))
    subjects = np.unique(data.test.labels["subject"])
    first = 100 * np.mean(subjects % 2 == 0)  # Genders alternate over people.
    before, after = "new, gender intrusive before", "new, gender intrusive after"
    assert set(rows) == {before, after}
    np.testing.assert_allclose([rows[before], rows[after]], [first, 100 - first])
    assert jax.tree.leaves(run.state)[0] == 0
