"""The made-up dataset, for every method's tests."""

import importlib

import pytest
import toy


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return toy.data()


@pytest.fixture
def given_to_central(monkeypatch, data):
    """``(name, **settings) ->`` what a method gives ``central``; epochs of 10."""

    def given_to_central(name, spec=data.spec, **settings):
        module, seen = importlib.import_module(f"jaxanon.methods.{name}"), []
        named = lambda _, config, spec, room, **given: given | {"room": room}
        monkeypatch.setattr(module, "central", named)
        monkeypatch.setattr(module, "by_epoch", lambda make: seen.append(make(10)))
        getattr(module, name)(spec, **settings)
        return seen[0]

    return given_to_central


@pytest.fixture
def who_plays():
    """``(players, epochs) ->`` the groups of those that play in each epoch."""

    def who_plays(players, epochs):
        found = []
        for epoch in range(epochs):
            rounds = [10 * epoch, 10 * epoch + 9]  # Its first and its last.
            plays = [[bool(p.when_fn(number)) for p in players] for number in rounds]
            assert plays[0] == plays[1]
            turns = zip(players, plays[0], strict=True)
            found.append([player.groups for player, playing in turns if playing])
        return found

    return who_plays
