"""Recipes: chosen by name, overridden by settings, recorded, and reopened."""

import json
import pickle

import jax
import numpy as np
import pytest
import toy

import jaxanon as ja
from jaxanon import learners, methods
from jaxanon.core import registry
from jaxanon.methods.blinder import scaling

TINY = {
    "hidden_sizes": (4,),
    "latent_dim": 2,
    "discriminator_hidden_sizes": (3,),
    "discriminator_rounds": 0,
    "discriminator_steps": 1,
    "samples_per_class": 8,
    "query_size": 3,
    "extra": 2,
    "guided": False,
}


@pytest.fixture(scope="module")
def data():
    return toy.data(per_subject=12, time=32)


def test_every_method_has_the_three_recipes_and_each_can_be_built(data):
    for kind in ("anonymizer", "learner", "controller"):
        for name in registry.names(kind):
            own = registry.entry(name)
            assert next(iter(own.recipes)) == "recommended"
            assert {"paper", "fast"} <= set(own.recipes), name
            for recipe in own.recipes:
                assert own.recipes[recipe].purpose.endswith(".")
                if name != "occupancy_gan":  # Its classes to hide have no default.
                    registry.settings_of(name, recipe)
                assert registry.default_epochs(name, recipe) >= 1
            assert registry.default_epochs(name, "fast") <= registry.default_epochs(
                name
            )


def test_a_recipe_is_selected_and_single_settings_override_it(data):
    paper = methods.recipes("blinder")["paper"].settings
    built = methods.blinder(data.spec, recipe="paper", gamma=7.0)
    assert built.recipe == "paper" and built.config.gamma == 7.0
    assert built.config.beta == paper["beta"] and not built.config.guided
    default = methods.blinder(data.spec)
    assert default.recipe == "recommended" and default.config.guided
    assert default.config == methods.blinder(data.spec, recipe="recommended").config
    assert methods.build("blinder", data.spec, recipe="paper").config.guided is False
    assert learners.build("fedavg", data.spec, recipe="fast").recipe == "fast"


def test_unknown_recipes_are_refused_with_the_names_that_there_are(data):
    with pytest.raises(ValueError, match="one of .*'paper'.*Did you mean"):
        methods.blinder(data.spec, recipe="papr")
    with pytest.raises(ValueError, match="recipe must be one of"):
        methods.orf(data.spec, recipe="official")


def test_a_recipe_of_unknown_settings_is_refused_where_it_is_registered():
    recipes = {"mine": registry.Recipe("Mine.", {"shar": 0.1})}
    with pytest.raises(TypeError, match="ORFConfig has no 'shar'"):
        registry.register(
            "mine", lambda spec, config: None, config=methods.ORFConfig, recipes=recipes
        )


def test_a_method_keeps_its_recipe_when_it_is_pickled(data):
    built = methods.blinder(data.spec, recipe="paper", **TINY)
    again = pickle.loads(pickle.dumps(built))
    assert again.recipe == "paper" and again.config == built.config


def test_a_run_records_its_recipe_and_is_reopened_with_its_settings(data, tmp_path):
    method = methods.blinder(data.spec, recipe="paper", **TINY)
    run = ja.train(method, data, epochs=1, output_dir=tmp_path / "run", progress=False)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["recipe"] == "paper"
    opened = ja.open_run(tmp_path / "run")
    assert opened.method.recipe == "paper" and opened.method.config == method.config
    key = jax.random.key(3)
    windows = data.test.windows[:4]
    np.testing.assert_array_equal(
        opened.anonymize(key, windows), run.anonymize(key, windows)
    )


def test_rounds_grow_with_the_data_and_stay_within_bounds():
    windows = [500, 2000, 8000, 32_000, 128_000, 500_000]
    rounds = [scaling.rounds(number, 4) for number in windows]
    assert rounds == sorted(rounds)
    assert rounds[0] >= scaling.MIN_ROUNDS and rounds[-1] <= scaling.MAX_ROUNDS
    # Four times the windows, or the classes, need twice the rounds.
    assert scaling.rounds(32_000, 4) == pytest.approx(
        2 * scaling.rounds(8000, 4), abs=1
    )
    assert scaling.rounds(8000, 16) == scaling.rounds(32_000, 4)
    # So each window is visited less often if there are more of them.
    visits = [number / total for number, total in zip(rounds, windows, strict=True)]
    assert visits == sorted(visits, reverse=True)


def test_a_round_grades_about_as_many_windows_for_any_number_of_clients():
    for clients in (3, 5, 10, 24, 100, 5000):
        of_round = scaling.cohort_size(clients) * scaling.query_size(clients)
        assert abs(of_round - scaling.ROUND_WINDOWS) <= scaling.cohort_size(clients) / 2
    assert scaling.cohort_size(5000) == scaling.MAX_CLIENTS
    assert scaling.query_size(1) == 64  # A single client's round stays small.


def test_the_schedule_follows_the_data_and_a_number_of_windows_overrides_it(data):
    scaled = methods.blinder(data.spec, **TINY | {"samples_per_class": None})
    prepared = scaled.prepare(ja.datasets.by_client(data.train))
    classes = data.spec.num_classes(data.spec.public)
    wanted = scaling.rounds_per_epoch(len(data.train.windows), classes)
    assert scaled.schedule.rounds_per_epoch(prepared) == wanted
    published = methods.blinder(data.spec, **TINY)
    rounds = published.schedule.rounds_per_epoch(prepared)
    assert rounds == max(1, classes * 8 // 4)  # The paper's t = K / b.
    with pytest.raises(ValueError, match="samples_per_class must be an integer"):
        methods.blinder(data.spec, fresh_batches=False)
