"""A wearer's own windows, which a federated anonymizer is trained further on."""

import jax
import numpy as np
import pytest

from jaxanon import datasets, exporting, methods

TINY = {
    **{"latent": 2, "hidden": (8,), "per_class": 4, "support": 1, "query": 3},
    **{"extra": 0, "adversary_hidden": (4,), "discriminator_steps": 0},
    **{"second_order": False, "shadows": False},
}


@pytest.fixture(scope="module")
def run(untrained):
    return untrained("blinder", **TINY)


@pytest.fixture
def own(data, tmp_path):
    """``(**changed) -> path`` of the windows of subject 0, with what was changed."""
    rows = data.test.labels["subject"] == 0
    arrays = {name: data.test.labels[name][rows] for name in ("activity", "gender")}

    def write(**changed):
        kept = {"windows": data.test.windows[rows]} | arrays | changed
        path = tmp_path / "own.npz"
        np.savez(path, **{name: a for name, a in kept.items() if a is not None})
        return path

    return write


def test_it_is_personalise_on_these_windows_alone(run, own, data):
    mine = exporting.personalised(run, own(), num_rounds=3, seed=5)
    rows = data.test.labels["subject"] == 0
    alone = datasets.Windows(
        data.test.windows[rows],
        {name: array[rows] for name, array in data.test.labels.items()},
    )
    state, _ = methods.personalise(
        run.method,
        jax.random.key(5),
        run.state,
        datasets.by_client(alone),
        num_rounds=3,
    )
    for one, other in zip(
        jax.tree.leaves(mine.state.params), jax.tree.leaves(state.params), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    before = jax.tree.leaves(run.state.params)
    after = jax.tree.leaves(mine.state.params)
    assert any(np.any(a != b) for a, b in zip(before, after, strict=True))
    assert mine.folder is None  # The shared run's report is not of this model.


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"gender": None}, r"lacks \['gender'\]; write it with numpy.savez"),
        ({"windows": np.ones((4, 9, 2), np.float32)}, "windows must be"),
        ({"gender": np.full(3, 7)}, r"labels\['gender'\] must be"),
    ],
)
def test_files_that_do_not_fit(run, own, changed, why):
    with pytest.raises(ValueError, match=why):
        exporting.personalised(run, own(**changed))


def test_what_learns_in_one_place_is_refused(untrained, own):
    central = untrained("obscurenet", latent=2, hidden=(8,))
    with pytest.raises(ValueError, match="obscurenet trains in one place"):
        exporting.personalised(central, own())
