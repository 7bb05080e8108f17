"""Files of an evaluation."""

import base64
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from jaxanon import report as reports
from jaxanon.evaluation.anonymizers import evaluate

HISTORY = [{"round": 10 * i, "losses": {"loss": 2.0**-i, "kl": 1.0}} for i in range(5)]


@pytest.fixture(scope="module")
def written(cases, raw_classifiers, tmp_path_factory):
    """Returns (report, folder) of one evaluation that wrote its files."""
    folder = tmp_path_factory.mktemp("run")
    run = cases.Run(cases.flip_side, folder, HISTORY)
    run.method = SimpleNamespace(name="<mirror>", config={"gamma": 0.2})
    return evaluate(
        run, cases.data(), raw_classifiers=raw_classifiers, **cases.QUICK
    ), folder


@pytest.mark.slow
def test_json_is_what_evaluate_returned(written):
    report, folder = written

    def refuse(name):
        pytest.fail(f"{name} is no JSON")

    text = (folder / "report.json").read_text()
    assert json.loads(text, parse_constant=refuse) == report
    told = {"name": "<mirror>", "config": {"gamma": 0.2}, "rounds": None}
    assert report["method"] == told


@pytest.mark.slow
def test_every_figure_is_a_vector_and_stands_in_the_page(written):
    _, folder = written
    names = {path.stem for path in folder.glob("*.svg")}
    attributes = ("activity", "side", "subject")
    assert names == {
        "leakage", "windows", "training", *(f"confusion_{a}" for a in attributes)
    }  # fmt: skip
    html = (folder / "report.html").read_text()
    inside = {base64.b64decode(x) for x in re.findall(r"base64,([^\"]+)", html)}
    assert inside == {path.read_bytes() for path in folder.glob("*.svg")}
    assert all(svg.startswith(b"<?xml") for svg in inside)


@pytest.mark.slow
def test_out_comes_before_the_folder_of_the_run(cases, raw_classifiers, tmp_path):
    run = cases.Run(cases.identity, tmp_path / "run")
    out = tmp_path / "new" / "out"
    evaluate(
        run,
        cases.data(),
        raw_classifiers=raw_classifiers,
        output_dir=out,
        **cases.QUICK,
    )
    assert (out / "report.html").exists() and not (tmp_path / "run").exists()
    # Without a history there are no training curves.
    assert not (out / "training.svg").exists()


def test_examples_are_in_physical_units(cases):
    data = cases.data()
    safe = (data.test.windows - np.float32([1, 2, 3])) / np.float32([2, 3, 4])
    examples = reports.choose_examples(data, safe)
    assert examples.names == ("slow, left", "slow, right", "fast, left", "fast, right")
    np.testing.assert_allclose(examples.safe, examples.raw, rtol=1e-5, atol=1e-5)
    rows = [(data.test.windows == raw).all((1, 2)).argmax() for raw in examples.raw]
    assert data.test.labels["activity"][rows].tolist() == [0, 0, 1, 1]
    assert data.test.labels["side"][rows].tolist() == [0, 1, 0, 1]
