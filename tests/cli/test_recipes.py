"""``--recipe``: it sets the defaults of other flags, which override it."""

import pytest

from jaxanon.cli import app, recipes, train
from jaxanon.core import registry


@pytest.fixture
def trained(monkeypatch):
    """Builds what ``jaxanon train`` would train."""
    calls = []

    def fake(method, options, settings, *, epochs, recipe, **more):
        calls.append((train.fields_of(settings), epochs, recipe))

    monkeypatch.setattr(train, "train_run", fake)
    return calls


def test_the_defaults_of_flags_are_the_recipe_s(trained):
    assert app.main(["train", "blinder"]) == 0
    assert app.main(["train", "blinder", "--recipe", "paper"]) == 0
    assert app.main(["train", "blinder", "--recipe=fast"]) == 0
    (first, epochs, name), (paper, paper_epochs, of_paper), (fast, few, _) = trained
    assert name == "recommended" and first["guided"] and epochs == 20
    assert of_paper == "paper" and not paper["guided"] and paper_epochs == 30
    settings = registry.entry("blinder").recipes["paper"].settings
    assert settings.items() <= paper.items()
    assert fast == first and few == 5


def test_single_flags_override_the_recipe(trained):
    words = ["train", "blinder", "--gamma", "3", "--guided", "--recipe", "paper"]
    assert app.main([*words, "--epochs", "2"]) == 0
    ((settings, epochs, name),) = trained
    assert (settings["gamma"], settings["guided"], epochs, name) == (
        3,
        True,
        2,
        "paper",
    )
    assert (
        settings["beta"] == registry.entry("blinder").recipes["paper"].settings["beta"]
    )


def test_unknown_recipes_are_refused_with_the_names_that_there_are(capsys):
    for words in (["train", "blinder"], ["sweep", "dysan"], ["train", "pfdrl"]):
        assert app.main([*words, "--recipe", "papr"]) == 2
        said = capsys.readouterr().err
        assert "recipe must be one of" in said and "Did you mean 'paper'?" in said


def test_help_shows_the_recipe_s_defaults(capsys):
    with pytest.raises(SystemExit):
        app.main(["train", "blinder", "--recipe", "paper", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "--recipe NAME" in said and "(default: 0.2)" in said


def test_settings_classes_without_defaults_keep_their_checks():
    entry = registry.entry("occupancy_gan")
    token = recipes.command_line.words.set(["sweep", "--recipe", "paper"])
    try:
        own = recipes.settings_class(entry)
    finally:
        recipes.command_line.words.reset(token)
    assert own(classes_to_hide=("a",)).privacy_loss == "paper"
    with pytest.raises(ValueError, match="classes_to_hide must name at least one"):
        own()
