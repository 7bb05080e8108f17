"""Tests of results on PrivateHub and its rivals: tables, goals, figures, speed."""

from unittest import mock

import jax
import jax.numpy as jnp
import pytest


@pytest.fixture
def tables(bench):
    return bench("privatehub.tables")


@pytest.fixture
def goals(bench):
    return bench("privatehub.goals")


def made(question="methods", name="PrivateHub", shown=0.9, worst=0.55, **more):
    one = {"accuracy": 0.8, "majority": 0.7, "recall": 0.25, "balanced": worst}
    row = {"question": question, "place": "home A", "choice": "bath", "at": 0}
    row |= {"name": name, "x": None, "seed": 0, "beside": "Kyoto1"}
    row |= {"hidden": ["bathe"], "private": {"bathe": one | {"auc": 0.6}}}
    row |= {"shown": shown, "shown_chance": 0.25, "shown_majority": 0.5}
    row |= {"worst": worst, "retrained": {"mlp": 0.5, "forest": 0.625}}
    window = {"class": "bathe", "hidden": True, "raw": [[0.0], [1.0]]}
    streams = {"channels": ["x"], "windows": [window | {"made": [[1.0], [1.0]]}]}
    return row | {"streams": streams} | more


def line(text, begin):
    return next(x for x in text.splitlines() if begin in x)


def test_the_chapter_stands_beside_in_its_own_layout(bench, tables):
    published = bench("privatehub.published")
    assert published.beside("Milan", "raw data") == ("84.0", "bath 78.0, leave home ?")
    assert published.beside("Smart office", "TimeGAN") == ("81.2", "Zoom call 42.1")
    rows = [made(), made(seed=1, shown=0.8), made(name="raw data", shown=0.95)]
    rows.append(made(choice="eating", at=1))
    raw, ours, other = tables.methods_table(rows).splitlines()[2:]
    assert raw.startswith("| home A | bathe | raw data | 1 | 95.0 | 25.0 | 50.0 | 80.0")
    assert "| PrivateHub | 2 | 85.0 ± 7.1 | 25.0 ± 0.0 | 50.0 ± 0.0 | 77.8 |" in ours
    assert "| 25.0 ± 0.0 | bath 36.5, leave home 38.1 | 55.0 ± 0.0 | 60.0" in ours
    assert ours.endswith("| 80.0 ± 0.0 | 70.0 ± 0.0 | 62.5 ± 0.0 |  |")
    assert "77.8" not in other  # The chapter's private choice is the first one.
    settings = {"batch_size": 64, "widths": [8, 4]}
    told = tables.learned({"rounds": 2700, "settings": settings, "training_s": 61.2})
    assert told == "2,700 rounds of 64, widths 8-4, 61 s"


def test_table_4_2_lies_as_the_chapter_s(bench, tables):
    published = bench("privatehub.published")
    assert published.figures("Milan", "bathe")[0] == 42.5
    assert published.figures("Smart office", "work")[3] == 39.6
    one = {"recall": 0.25, "balanced": 0.5, "accuracy": 0.5, "majority": 0.5}
    one["auc"] = 0.5
    both = {"hidden": ["bathe", "leave"], "private": {"bathe": one, "leave": one}}
    rows = [made(**both), made(seed=1, shown=0.8, **both)]
    rows += [made(name="raw data", shown=0.95, **both), made(choice="eating", at=1)]
    first = tables.of_first_choice(rows, "table 4.2")
    shown, bathe, leave = tables.chapter_table(first).splitlines()[2:]
    place = "| home A (Kyoto1) |"
    cells = "  (68.6) |  (62.2) |  (53.9) | 85.0 ± 7.1 (77.8) | 95.0 (80.0) |  | 50.0 |"
    assert shown == f"{place} non-private |{cells}"
    assert bathe.startswith(f"{place} private: bathe |  (42.1) |")
    assert "| 25.0 ± 0.0 (38.1) | 25.0 (81.0) |" in leave  # Not the values of a bath.


def test_other_tables_by_hand(tables):
    errors = {"held": 3.0, "raw": 2.0, "of_made": 2.1, "of_real": 4.0, "taught": 2.0}
    row = made("forecasts", errors={"CO2": errors})
    (told,) = tables.forecast_table([row]).splitlines()[2:]
    assert told.endswith("| CO2 | 3 | 2 | 2.1 | 1.05 | 4 | 2.00 | 2 | 1.00 |")
    blocked = {"with": 0.8, "without": 0.65, "raw": 0.9}
    (told,) = tables.missing_table([made("missing", **blocked)]).splitlines()[2:]
    assert "| 90.0 | 80.0 | 65.0 | 15.0 |" in told
    more = {"asked_shown": 0.7, "asked_hidden": None, "other_told": 0.6}
    row = made("switched", **more, real_told=0.2, raw_shown=0.9)
    (told,) = tables.switched_table([row]).splitlines()[2:]
    assert told.endswith("| 70.0 | 90.0 |  | 60.0 | 20.0 |")
    rows = [made("steps", f"{n} steps", x=n, asked_shown=0.5, windows_per_s=1000 / n)
            for n in (100, 20)]  # fmt: skip
    first, second = tables.steps_table(rows).splitlines()[2:]
    assert "20 steps" in first and "| 50.0 | 50 |" in first and "| 10 |" in second


def test_what_must_be_reached_is_told_with_what_is(goals):
    rows = [made(shown=0.93, worst=0.6), made(name="raw data", shown=0.95, worst=0.9)]
    rows += [made(name="TimeGAN", shown=0.8, worst=0.61)]
    rows += [made(name="Conditional GAN", shown=0.94, worst=0.7)]
    text = goals.table(rows)
    assert line(text, "classes to show").endswith(
        "| 93.00 ± 0.00 %; raw 95.00 ± 0.00 %; 1 of 5 seeds | holds so far |"
    )
    assert line(text, "class to hide").endswith(
        "| 60.00 ± 0.00 %; 1 of 5 seeds | holds so far |"
    )
    assert line(text, "over TimeGAN").endswith("| holds so far |")
    # It hides less but shows more; the requirement is both.
    assert line(text, "over Conditional GAN").endswith("| does not hold |")
    assert line(text, "over Occupancy-GAN").endswith("| not run |")
    assert line(text, "MotionSense | gender").endswith("| not run |")
    text = goals.table([made(shown=0.92, worst=0.61), rows[1]])
    assert line(text, "classes to show").endswith("| does not hold |")
    assert line(text, "class to hide").endswith("| does not hold |")
    assert "holds |" not in goals.table([]).replace("does not hold |", "")


def test_only_as_many_seeds_as_are_asked_for_settle_what_holds(goals):
    for number, told in ((4, "holds so far"), (5, "holds"), (6, "holds")):
        text = goals.table([made(seed=seed) for seed in range(number)])
        assert line(text, "class to hide").endswith(f"{number} of 5 seeds | {told} |")
    rows = [made(seed=seed, worst=0.7) for seed in range(2)]
    assert line(goals.table(rows), "class to hide").endswith("| does not hold |")


def test_each_reading_of_forecasts_is_held_against_raw(goals):
    errors = {"held": 1.0, "raw": 2.0, "of_made": 2.2, "of_real": 4.0, "taught": 1.0}
    text = goals.table([made("forecasts", errors={"CO2": errors})])
    assert line(text, "CO2, error on rewritten").endswith(
        "1 of 5 seeds | holds so far |"
    )
    assert line(text, "CO2, error on the real").endswith("| does not hold |")
    assert line(text, "CO2, error on raw").endswith(
        "| 0.50 ± 0.00 x; 1 of 5 seeds | holds so far |"
    )
    assert goals.table([]).count("not run") > 12


def test_steps_motionsense_and_speed_are_held_against_what_is_asked(bench, goals):
    of = lambda n, **more: made("steps", f"{n} steps", x=n, windows_per_s=1.0, **more)
    rows = [of(20, shown=0.89, asked_shown=0.5), of(100, shown=0.9, asked_shown=0.52)]
    text = goals.table(rows)
    assert line(text, "to show, rewritten").endswith("| holds so far |")
    assert line(text, "to show, from nothing").endswith("| does not hold |")
    row = {"question": "motionsense", "place": "MotionSense", "system": "PrivateHub"}
    row |= {"public_accuracy": [96.5, 0.1], "private_balanced_accuracy": [52.5, None]}
    row |= {"retrained_balanced": {"mlp": [56.0, None]}, "worst": "mlp"}
    row |= {"form": "", "epochs": 12, "seeds": [0, 1]}
    text = goals.table([row])
    assert line(text, "| activity").endswith("| 96.50 %; 2 of 5 seeds | holds so far |")
    assert line(text, "gender").endswith("| 52.50 %; 2 of 5 seeds | does not hold |")
    assert line(text, "re-identification").endswith(
        "| 56.00 %; 2 of 5 seeds | holds so far |"
    )
    text = bench("privatehub.tables").motionsense_table([row])
    assert "| 96.5 ± 0.1 | 52.5 | 56.0 (mlp) | 12 |" in text
    speed = bench("privatehub.speed").row
    rows = [speed("over diffusers' UNet1DModel", 1.5, "x", ">= 2", "so many")]
    text = goals.table(rows)
    assert line(text, "UNet1DModel").endswith("| 1.5 x (so many) | does not hold |")
    assert line(text, "rewriting").endswith("| not run |")
    with mock.patch.object(jax, "default_backend", lambda: "gpu"):
        rows.append(speed("MotionSense's test windows rewritten", 2.0, "s", "", ""))
    assert line(goals.table(rows), "windows rewritten on a GPU").endswith("| holds |")


def test_speed_is_of_the_same_calls(bench):
    speed = bench("privatehub.speed")
    found = {row["name"]: row for row in speed.rows(True)}
    share = "share of time outside the network, rewriting"
    assert (
        share in bench("privatehub.goals").SPEED and 0 <= found[share]["value"] <= 100
    )
    assert found["windows, one condition"]["value"] > 0
    assert found["network over one with every product of its convolutions"]["value"] > 0
    # A network that counts its calls and their widths.
    problem = speed.Problem(True)
    called = []

    class Counted:
        num_features = problem.nets.num_features

        def __getattr__(self, name):
            return getattr(nets, name)

        def denoise(self, params, x, t, told):
            jax.debug.callback(lambda: called.append(1))
            return jnp.zeros_like(x)

    nets, problem.nets = problem.nets, Counted()
    jax.block_until_ready(problem.calls_alone(3, 12)(problem.x))
    jax.effects_barrier()
    alone = len(called)
    jax.block_until_ready(problem.rewrite()(jnp.uint32(0), problem.x))
    jax.effects_barrier()
    assert len(called) == 2 * alone > 0


def test_diffusers_is_left_out_where_it_is_not(bench, tmp_path, capsys):
    speed = bench("privatehub.speed")
    assert speed.diffusers(None, None, 1) is None
    assert speed.diffusers(tmp_path, None, 1) is None
    assert "diffusers is not installed at" in capsys.readouterr().out
    calls = bench("harness.rivals").install("diffusers", tmp_path)
    assert len(calls) == 3 and "torch==2.13.0" in calls[1] and "diffusers" in calls[2]


def test_figures_are_drawn_of_what_there_is(bench, tmp_path):
    page = bench("privatehub.page")
    errors = {"held": 1.0, "raw": 2.0, "of_made": 2.2, "of_real": 4.0, "taught": 1.0}
    rows = [made(), made(name="raw data"), made(choice="eating", at=1)]
    rows += [made("forecasts", errors={"CO2": errors})]
    rows += [made("missing", "a and b", **{"with": 0.8, "without": 0.7, "raw": 0.9})]
    out = tmp_path / "hub.json"
    page.write(out, rows)
    names = ("methods", "choices", "streams", "forecasts", "missing")
    for name in names:
        png = out.with_name(f"hub_{name}.png").read_bytes()
        assert png.startswith(b"\x89PNG") and len(png) > 5000
    told = out.with_suffix(".html").read_text()
    assert told.count("<img") == len(names) and "does not hold" in told


def test_places_and_choices_are_drawn_in_their_order(bench, monkeypatch):
    page, drawn = bench("privatehub.page"), []
    panels = page.panels
    monkeypatch.setattr(
        page, "panels", lambda names: drawn.append(panels(names)) or drawn[0]
    )
    second = made(choice="y", at=1, hidden=["leave", "bathe"])
    page.choices([made(place="room B"), second, made(choice="x")])
    ((_, axes),) = drawn
    assert list(axes) == [made()["place"], "room B"]
    told = [label.get_text() for label in axes[made()["place"]].get_xticklabels()]
    assert told == ["bathe", "leave,\nbathe"]


def test_streams_are_kept_of_what_is_drawn_alone(bench):
    page, work = bench("privatehub.page"), bench("privatehub.jobs")
    rows = [made(seed=1), made(), made(at=1), made(name="raw data"), made(place="B")]
    rows += [made(name=work.ANEW), {"question": "speed", "name": "windows"}]
    kept = page.slim(rows)
    assert [("streams" in row) for row in kept] == [False, True] + 2 * [False] + [
        *(True, False, False),
    ]
    assert page.slim(kept) == kept and "streams" in rows[0]
    assert page.with_streams(kept) == [rows[1], rows[4]]


def test_windows_that_are_too_easily_foretold_do_not_do(goals):
    errors = {"held": 1.0, "raw": 2.0, "of_made": 1.0, "of_real": 1.0, "taught": 1.0}
    text = goals.table([made("forecasts", errors={"CO2": errors})])
    flat = line(text, "CO2, error on rewritten")
    assert "| 0.9 to 1.1 x raw | 0.50" in flat and flat.endswith("| does not hold |")
    assert line(text, "CO2, error on the real").endswith("| holds so far |")


def test_each_way_to_rewrite_is_held_against_what_is_asked(bench, tables, goals):
    work = bench("privatehub.jobs")
    raw = made(name="raw data", shown=0.95, worst=0.9)
    anew = made(name=work.ANEW, shown=0.9, worst=0.5)
    text = goals.table([made(shown=0.94, worst=0.7), raw, anew])
    ends = lambda begin: line(text, f"{begin}: class to hide").split("|")[-2].strip()
    assert ends("PrivateHub") == "does not hold" and ends(work.ANEW) == "holds so far"
    assert line(text, f"{work.ANEW}: classes to show").endswith("| does not hold |")
    # Compared with raw windows of the same seed, since classifiers differ.
    text = goals.table([made(shown=0.94), made(name="raw data", shown=0.99, seed=1)])
    assert line(text, "PrivateHub: classes to show").endswith("|  | not run |")
    rows = [made(name="raw data", shown=0.99, seed=1), raw, made(shown=0.94)]
    told = line(goals.table(rows), "PrivateHub: classes to show")
    assert told.endswith("| holds so far |")
    # Seeds that ours, a GAN or another number of steps lacks do not count.
    rows += [made(shown=0.5, seed=2), made(name="TimeGAN", shown=0.93)]
    rows += [made(name="TimeGAN", shown=0.99, seed=3)]
    text = goals.table(rows)
    assert "1 of 5 seeds | holds so far |" in line(text, "PrivateHub: classes to show")
    assert "2 of 5 seeds" in line(text, "PrivateHub: class to hide")
    assert "shown 94.00" in line(text, "PrivateHub over TimeGAN")
    assert "to 93.00" in line(text, "PrivateHub over TimeGAN")
    few = made("steps", name="20 steps", asked_shown=0.9)
    text = goals.table([few, few | {"seed": 1, "name": "100 steps"}])
    assert line(text, "PrivateHub: 20 steps, class to hide").endswith("| not run |")
    ways = {"strength": 1.0, "negative_guidance_scale": 0.5}
    told = {
        "rounds": 20,
        "settings": {"batch_size": 8, "widths": [4]},
        "training_s": 1.0,
    }
    rows = [made(name=work.ANEW, **told, way=ways), raw, made()]
    lines = tables.methods_table(rows).splitlines()[2:]
    assert [text.split("|")[3].strip() for text in lines] == [
        *("raw data", "PrivateHub", work.ANEW),
    ]
    assert lines[2].endswith(
        "| 20 rounds of 8, widths 4, 1 s; strength 1; negative guidance scale 0.5 |"
    )
    # The same holds on MotionSense, where forms distinguish the ways.
    row = {"question": "motionsense", "place": "MotionSense", "system": "PrivateHub"}
    row |= {"public_accuracy": [97.0, None], "seeds": [0], "epochs": 12, "worst": "mlp"}
    leaks, hides = (
        row
        | {"private_balanced_accuracy": [own, None], "form": form}
        | {"retrained_balanced": {"mlp": [own, None]}}
        for own, form in ((80.0, ""), (50.0, "all anew"))
    )
    text = goals.table([leaks, hides])
    assert line(text, "MotionSense | gender").endswith("| does not hold |")
    assert line(text, "MotionSense, all anew | gender").endswith("| holds so far |")
    assert text.count("honest re-identification") == 2
