"""Rows of the table of anonymizers that other seeds were measured for."""

import doctest
import json
import statistics

import pytest

from jaxanon.evaluation.summary import aggregate

NAMES = "case", "system", "form"


def row(seeds, public, private, attackers, streams, **more):
    """A row of rooms by its seeds' figures, one each."""
    pair = lambda values: list(
        aggregate([{"x": value} for value in values])["x"].values()
    )
    found = dict.fromkeys(NAMES, "rooms")
    return found | {
        "seeds": seeds,
        "epochs": 1,
        "public_accuracy": pair(public),
        "private_accuracy": pair(private),
        "retrained_balanced": {name: pair(each) for name, each in attackers.items()},
        "retrained_accuracy": {name: pair(each) for name, each in attackers.items()},
        "attacks": {
            "stream": {
                "balanced": statistics.fmean(streams),
                "attacker": "mlp" if len(seeds) > 1 else "forest",
                "equal_error_rate": 100 - statistics.fmean(streams),
            }
        },
        "linkage": {
            "unseen_subjects": True,
            "attacker": "mlp",
            **dict.fromkeys(("accuracy", "balanced_accuracy", "chance"), pair(streams)),
        },
        "seconds": {"seeds": {"training": 2.0 * len(seeds)}},
        **more,
    }


PUBLIC, PRIVATE, STREAMS = [90.0, 94.0, 92.5], [60.0, 50.0, 55.0], [70.0, 75.0, 65.0]
MLP, FOREST = [51.0, 55.0, 59.0], [58.0, 54.0, 50.0]


@pytest.mark.parametrize("split", [1, 2])
def test_seeds_measured_apart_come_to_what_they_come_to_at_once(bench, split):
    def part(where):
        attackers = {"mlp": MLP[where], "forest": FOREST[where]}
        seeds = list(range(3))[where]
        return row(seeds, PUBLIC[where], PRIVATE[where], attackers, STREAMS[where])

    together = part(slice(None))
    found = bench("anonymizers.rows").pooled(part(slice(split)), part(slice(split, 3)))
    assert found["seeds"] == [0, 1, 2]
    for name in ("public_accuracy", "private_accuracy"):
        assert found[name] == pytest.approx(together[name])
    for name in ("mlp", "forest"):
        expected = pytest.approx(together["retrained_balanced"][name])
        assert found["retrained_balanced"][name] == expected
        assert found["retrained_accuracy"][name] == expected
    assert found["worst"] == "mlp"  # Though the forest is worse by the first seed.
    stream = found["attacks"]["stream"]
    assert stream["balanced"] == pytest.approx(70) == 100 - stream["equal_error_rate"]
    both = ["forest", "mlp"] if split == 1 else ["mlp", "forest"]
    assert stream["attacker"] == " or ".join(both)
    assert found["linkage"]["balanced_accuracy"] == pytest.approx(
        together["linkage"]["balanced_accuracy"]
    )
    assert found["linkage"]["attacker"] == "mlp"
    assert found["seconds"] == together["seconds"]


def test_what_one_row_alone_has_stays(bench):
    old = row([0], [90], [50], {"mlp": [50.0], "svm": [70.0]}, [60])
    old |= {"linkage": None, "majority": [57.0, None]}
    del old["retrained_accuracy"]
    old["seconds"]["attacks"] = {"evaluation": 5.0}
    figures = {"fingerprint: subject": {"uniqueness": [0.5, None]}}
    new = row([4], [92], [52], {"mlp": [60.0]}, [60], figures=figures, date="later")
    found = bench("anonymizers.rows").pooled(old, new)
    assert found["seeds"] == [0, 4] and found["date"] == "later"
    assert found["retrained_balanced"]["svm"] == [70.0, None]
    assert found["retrained_accuracy"] == {"mlp": [60.0, None]}
    assert found["worst"] == "svm" and found["majority"] == [57.0, None]
    assert found["linkage"] == new["linkage"] and found["figures"] == figures
    assert found["seconds"] == {
        "seeds": {"training": 4.0},
        "attacks": {"evaluation": 5.0},
    }


def test_figures_of_both_are_put_together(bench):
    figures = lambda value: {"inversion: the window": {"correlation": [value, None]}}
    rows = [
        row([seed], [90], [50], {"mlp": [50.0]}, [60], figures=figures(value))
        for seed, value in ((0, 0.9), (1, 0.1))
    ]
    found = bench("anonymizers.rows").pooled(*rows)["figures"]
    told = found["inversion: the window"]["correlation"]
    assert told == pytest.approx([0.5, 0.8 / 2**0.5])


def test_rows_of_other_experiments_and_of_some_of_the_same_seeds_stay_apart(
    bench, tmp_path
):
    path, module = tmp_path / "rows.json", bench("anonymizers.rows")
    old = row([0, 1], [90, 91], [50, 51], {"mlp": [50.0, 51.0]}, [60, 61])
    path.write_text(json.dumps([old]))
    longer = row([2], [94], [54], {"mlp": [60.0]}, [60]) | {"epochs": 2}
    partly = row([1, 2], [94, 95], [54, 55], {"mlp": [60.0, 61.0]}, [60, 61])
    with pytest.warns(UserWarning, match=r"rooms, rooms rooms: seeds \[2\] are left"):
        (found,) = module.together(path, [longer], [])
    assert found["seeds"] == [0, 1] and found["epochs"] == 1
    (found,) = module.together(path, [partly], [])  # As many, and found now.
    assert found["seeds"] == [1, 2]


def test_printed_examples(bench):
    for name in ("anonymizers.rows", "anonymizers.entries"):
        failed, tried = doctest.testmod(bench(name))
        assert tried and not failed


def test_a_file_s_rows_are_put_together_with_those_of_other_seeds(bench, tmp_path):
    path, module = tmp_path / "rows.json", bench("anonymizers.rows")
    old = row([0], [90], [50], {"mlp": [50.0]}, [60])
    path.write_text(json.dumps([old]))
    (found,) = module.together(path, [row([1], [94], [54], {"mlp": [60.0]}, [60])], [])
    assert found["seeds"] == [0, 1]
    assert found["public_accuracy"] == pytest.approx([92.0, 8**0.5])
    # The same seed again is no other one.
    again = row([0], [80], [50], {"mlp": [50.0]}, [60])
    (found,) = module.together(path, [again], [])
    assert found["seeds"] == [0] and found["public_accuracy"] == [80.0, None]


def test_rows_of_a_file_stay_unless_more_is_told_of_them(bench, tmp_path):
    module = bench("anonymizers.rows")
    row = lambda system, seeds, stages, figure: {
        "case": "rooms",
        "system": system,
        "form": "",
        "seeds": list(range(seeds)),
        "seconds": dict.fromkeys(range(stages)),
        "figure": figure,
    }
    path = tmp_path / "rows.json"
    order = [("rooms", name, "") for name in ("first", "second", "third")]
    assert module.together(path, [row("second", 1, 1, "only")], order)[0]["seeds"] == [
        0
    ]
    before = [
        row("unlisted", 1, 1, "a"),
        row("third", 3, 1, "b"),
        row("first", 1, 2, "c"),
    ]
    path.write_text(json.dumps(before))
    now = [row("third", 1, 3, "fewer seeds"), row("first", 1, 2, "as many")]
    found = module.together(path, [*now, row("second", 1, 1, "new")], order)
    assert [(one["system"], one["figure"]) for one in found] == [
        ("first", "as many"),
        ("second", "new"),
        ("third", "b"),
        ("unlisted", "a"),
    ]
