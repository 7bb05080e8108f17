"""The card states the measurements, their data, and the absence of a guarantee."""

import dataclasses
import json

import pytest

from jaxanon.exporting import card

TINY = {"latent_dim": 3, "hidden_sizes": (8,)}


def scores(accuracy, chance=0.5):
    return {"balanced_accuracy": accuracy, "chance": chance}


REPORT = {
    "dataset": {"name": "toy", "split": "subject"},
    "utility": {
        "attribute": "activity",
        "raw": scores(0.9, 1 / 3),
        "anonymized": scores(0.8, 1 / 3),
    },
    "intrusive": {
        "gender": {"raw": scores(0.7), "anonymized": scores(0.51)},
        "subject": None,
    },
    "reidentification": {
        "gender": {"attackers": {"mlp": scores(0.6), "cnn": scores(0.625)}}
    },
}
TABLE = """\
| activity | public | trained on raw windows | 90.0 % | 80.0 % | 33.3 % |
| gender | private | trained on raw windows | 70.0 % | 51.0 % | 50.0 % |
| gender | private | mlp, trained on anonymized windows |  | 60.0 % | 50.0 % |
| gender | private | cnn, trained on anonymized windows |  | 62.5 % | 50.0 % |

"""


@pytest.fixture(scope="module")
def written(untrained):
    """Returns ``(**changed) -> text`` of a card."""
    run = untrained("obscurenet", **TINY)
    settings = {
        "weights": "float32",
        "epsilon": None,
        "notes": ["Hm."],
    }

    def text(report=REPORT, **changed):
        asked = settings | changed
        lines = card.measured_lines(report, asked["weights"])
        return card.card(run, measured=lines, **asked)

    return text


def test_every_attacker_has_a_row_and_whom_nobody_could_ask_has_none(written):
    text = written()
    assert f"|---|---|---|---|---|---|\n{TABLE}## Guarantee" in text
    assert "on test windows of toy (subject split):" in text
    assert "- Hm.\n" in text
    assert "Not measured: run `jaxanon evaluate` before" in written(report=None)


@pytest.mark.parametrize("weights", ["float16", "int8"])
def test_what_was_measured_had_other_weights(written, weights):
    said = f"(subject split), before weights were cut to {weights}:"
    assert said in written(weights=weights)


def test_a_guarantee_is_claimed_where_there_is_one(written):
    none, some = written(), written(epsilon=0.5)
    assert "No formal guarantee" in none
    assert "Attackers that are stronger" in none
    assert "ε = 0.5 for each window of 1.6 s (pure)" in some
    assert "Attackers that are stronger" not in some
    for text in none, some:
        assert "- activity, the public attribute." in text


def test_what_leaves_as_it_was_is_told(untrained):
    told = {"weights": "float32", "epsilon": None, "measured": [], "notes": []}
    run = untrained(
        "privatehub",
        **{
            "widths": (4,),
            "heads": 2,
            "num_inference_steps": 3,
            "num_train_timesteps": 20,
        },
        classes_to_hide=("b",),
    )
    assert "Windows leave unchanged unless their class" in card.card(run, **told)


@pytest.mark.parametrize(("rounds", "told"), [(0, "| gender |"), (7, "after 7.")])
def test_what_was_measured_of_another_state_is_not_told(
    untrained, tmp_path, rounds, told
):
    """The run has trained for no round."""
    run = dataclasses.replace(untrained("obscurenet", **TINY), folder=tmp_path)
    report = REPORT | {"method": {"name": "obscurenet", "rounds": rounds}}
    (tmp_path / "report.json").write_text(json.dumps(report))
    lines = "\n".join(card.measured_of_run(run, "float32"))
    assert told in lines
    assert ("Not measured after 0 rounds" in lines) == bool(rounds)
