"""Tests of DEEProtect's benchmark: the required ε, tables and page."""

import json

import numpy as np
import pytest


@pytest.fixture
def page(bench):
    return bench("deeprotect.page")


@pytest.fixture
def tables(bench):
    return bench("deeprotect.tables")


def row(kind, of, useful, **more):
    told = {"activity": useful, "gender": 0.5}
    place = {"dataset": "made", "case": "1", "useful": ["activity"]}
    return {"kind": kind, "of": of, "told": told, "sensitive": "gender"} | place | more


def budget(release, epsilon, useful):
    return row("budget", release, useful, release=release, epsilon=epsilon)


@pytest.fixture
def rows(tables):
    return [
        row("features", "autoencoder, 7", 0.8, extractor="autoencoder", count=7)
        | {"informativeness": 0.25, "std": {"activity": 0.01}},
        row("features", "autoencoder, 30", 0.9, extractor="autoencoder", count=30)
        | {"informativeness": 0.2},
        row("features", "pca, 7", 0.7, extractor="pca", count=7)
        | {"informativeness": 0.1},
        row("raw", "raw windows", 0.9),
        budget("few", 1.0, 0.3),
        budget("few", 4.0, 0.85),
        budget("none is enough", 4.0, 0.79),
        budget(tables.LAPLACE, 100.0, 0.8) | {"noise": 8.7},
        budget(tables.NAMED, 5.0, 0.1),
        {
            **{"kind": "speed", "of": "a window", "value": 42.0},
            **{"unit": "microseconds", "asked": 50.0},
        },
    ]


def test_the_epsilon_that_is_needed_by_hand(tables, rows):
    found = tables.needed(rows)["made", "1"]
    # From 0.3 to 0.85, 0.8 is 10/11 of the way: 4^(10/11).
    assert found["few"] == (pytest.approx(4 ** (10 / 11)), "")
    assert found["none is enough"] == (None, "")
    assert found[tables.LAPLACE] == (100.0, "≤ ")
    assert tables.crossing([(1.0, 0.9)], 0.8) == 1.0
    assert tables.crossing([], 0.8) is None


def test_tables_say_what_was_found(page, tables, rows):
    told = page.markdown(rows)
    # 80 of 90 are 88.9 %.
    want = "| made | 1 | autoencoder | 80.0 ± 1.0 | 90.0 | 88.9 | 0.250 |"
    assert want in told and "| made | 1 | pca | 70.0 |  |  | 0.100 |" in told
    assert "| made | 1 | few | 3.53 | 28 |  |" in told
    assert "| made | 1 | none is enough | more than was tried |  |  |" in told
    assert f"| made | 1 | {tables.LAPLACE} | ≤ 100 | 1 |  |" in told
    assert "| made | 1 | few | 4 | 85.0 | 50.0 |" in told
    noise = f"| made | 1 | {tables.LAPLACE} | 100 | 8.7 | 9 |"  # 30² / 100
    assert noise in told and "86.13 %" in told
    assert "| a window | 42.0 microseconds | 50 |" in told


def test_seven_features_are_a_share_of_more_alone(tables, rows):
    three = rows[0] | {"of": "autoencoder, 3", "count": 3}
    told = tables.features_table([three, rows[0]])
    assert "| made | 1 | autoencoder | 80.0 ± 1.0 | 80.0 ± 1.0 |  | 0.250 |" in told


def test_after_the_hours_nothing_new_is_begun(bench, tmp_path):
    benchmark = bench("deeprotect.command")
    study = object.__new__(benchmark.Study)
    study.dataset, study.name, study.folder = "made", "1", tmp_path
    study.useful, study.sensitive, study.end = ("activity",), "gender", float("inf")
    made = {"told": {"activity": 0.5, "gender": 0.5}}
    assert study.kept("raw", "raw windows", lambda: made)["told"] == made["told"]
    study.end = 0.0
    assert study.kept("raw", "raw windows", dict)["told"] == made["told"]
    assert study.kept("raw", "others", lambda: made) is None


def test_the_page_and_the_figure(page, tables, rows, tmp_path):
    path = tmp_path / "deep" / "rows.json"
    page.write(path, rows)
    assert json.loads(path.read_text()) == rows
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    told = path.with_suffix(".html").read_text()
    assert ">none is enough</td>" in told and "86.13" in told
    assert path.with_suffix(".md").read_text() == page.markdown(rows)
    page.write(path, [])
    assert "<img" not in path.with_suffix(".html").read_text()


def test_smoke(run_script, tmp_path):
    rows = tmp_path / "rows.json"
    run_script(
        *("deeprotect", "--smoke", "--json", rows, "--folder", tmp_path / "kept")
    )
    found = json.loads(rows.read_text())
    kinds = {row["kind"] for row in found}
    assert kinds == {"features", "raw", "budget", "speed"}
    assert all(0 <= x <= 1 for row in found for x in row.get("told", {}).values())


def test_features_chosen_by_labels(bench):
    rng = np.random.default_rng(0)
    labels = np.arange(300) % 3
    windows = rng.normal(size=(300, 2, 5)).astype(np.float32)
    windows *= 10.0  # Large everywhere; classes differ where it is small.
    windows[:, 0, :2] *= 0.02
    windows[:, 0, 0] += labels
    windows[:, 0, 1] += labels == 1
    command = bench("deeprotect.command")
    for name in command.PROJECTIONS:
        see = command.supervised(name, 2, windows[::2], labels[::2])
        seen = see(windows[1::2])
        assert seen.shape == (150, 2)
        centres = np.stack([see(windows[labels == c]).mean(axis=0) for c in range(3)])
        nearest = np.square(seen[:, None] - centres).sum(axis=2).argmin(axis=1)
        assert np.mean(nearest == labels[1::2]) > 0.9
