"""A wearer's windows, which fine-tune a federated anonymizer."""

import math

import jax
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jaxanon import datasets, exporting, methods


@pytest.fixture
def own(data, tmp_path):
    """Returns ``(**changed) -> path`` of subject 0's windows with changed arrays."""
    rows = data.test.labels["subject"] == 0
    arrays = {name: data.test.labels[name][rows] for name in ("activity", "gender")}

    def write(**changed):
        kept = {"windows": data.test.windows[rows]} | arrays | changed
        path = tmp_path / "own.npz"
        np.savez(path, **{name: a for name, a in kept.items() if a is not None})
        return path

    return write


def test_it_is_personalise_on_these_windows_alone(small_blinder, own, data):
    mine = exporting.personalised(small_blinder, own(), num_rounds=3, seed=5)
    rows = data.test.labels["subject"] == 0
    alone = datasets.Windows(
        data.test.windows[rows],
        {name: array[rows] for name, array in data.test.labels.items()},
    )
    state, _ = methods.personalise(
        small_blinder.method,
        jax.random.key(5),
        small_blinder.state,
        datasets.by_client(alone),
        num_rounds=3,
    )
    for one, other in zip(
        jax.tree.leaves(mine.state.params), jax.tree.leaves(state.params), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    before = jax.tree.leaves(small_blinder.state.params)
    after = jax.tree.leaves(mine.state.params)
    assert any(np.any(a != b) for a, b in zip(before, after, strict=True))
    assert mine.folder is None  # The shared run's report does not describe this model.


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"gender": None}, r"lacks \['gender'\]; write it with numpy.savez"),
        ({"windows": np.ones((4, 9, 2), np.float32)}, "windows must be"),
        ({"gender": np.full(3, 7)}, r"labels\['gender'\] must be"),
    ],
)
def test_files_that_do_not_fit(small_blinder, own, changed, why):
    with pytest.raises(ValueError, match=why):
        exporting.personalised(small_blinder, own(**changed))


def test_what_learns_in_one_place_is_refused(untrained, own):
    central = untrained("obscurenet", latent_dim=2, hidden_sizes=(8,))
    with pytest.raises(ValueError, match="obscurenet trains centrally"):
        exporting.personalised(central, own())


NAMES = ("activity", "gender")
HARMED = {
    "another time": lambda a: a | {"windows": a["windows"][:, :-1]},
    "another width": lambda a: a | {"windows": a["windows"][..., :1]},
    "one window": lambda a: a | {"windows": a["windows"][0]},
    "words": lambda a: a | {"windows": np.full(a["windows"].shape, "1")},
}


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.sampled_from([*HARMED, "lacks", "label", "length", "type", "broken", "rounds"]),
    st.sampled_from(NAMES),
    st.integers(1, 9),
    st.sampled_from([math.nan, math.inf, 1e300]),
    st.sampled_from([-1, 3, 200]),
)
def test_files_that_are_no_wearer_s(
    tmp_path, small_blinder, data, what, name, row, number, label
):
    own = {"windows": data.test.windows[:10]}
    own |= {each: data.test.labels[each][:10] for each in NAMES}
    message, rounds = "windows must be", 1
    if what in HARMED:
        own = HARMED[what](own)
    elif what == "broken":
        own["windows"] = own["windows"].astype(np.float64)
        own["windows"][row, 1, 1] = number
        message = f"windows must be finite .* in 1 of 10.*first at index {row}"
    elif what == "lacks":
        gone = name if row % 2 else "windows"
        del own[gone]
        message = rf"lacks \['{gone}'\]; write it with numpy.savez"
    elif what == "rounds":
        rounds, message = 1 - row, "num_rounds must be >= 1"
    else:
        values = own[name].copy()
        values[row] = label
        message = rf"labels\['{name}'\] must"
        own[name] = {
            "label": values,
            "length": values[:row],
            "type": own[name] * 1.0,
        }[what]
    path = tmp_path / "own.npz"
    np.savez(path, **own)
    with pytest.raises((TypeError, ValueError), match=message):
        exporting.personalised(small_blinder, path, num_rounds=rounds)
    with pytest.raises(FileNotFoundError):
        exporting.personalised(small_blinder, tmp_path / f"no {what}.npz")
    path.write_bytes(path.read_bytes()[: 40 * row])
    with pytest.raises(ValueError, match="own.npz"):
        exporting.personalised(small_blinder, path)
