"""The toy dataset and fixtures for the tests of methods."""

import importlib
from unittest import mock

import pytest
import toy

from jaxanon import methods
from jaxanon.core.method import Schedule


@pytest.fixture(scope="session")
def data():
    """Five subjects' windows of three activities and two genders."""
    return toy.data()


class Given(dict):
    """Arguments of ``central``, returned instead of a method."""

    schedule = Schedule(None, None)

    def _replace(self, **fields):
        return Given(self | fields)


@pytest.fixture
def given_to_central(monkeypatch, data):
    """``(name, **settings) ->`` the arguments of ``central``; epochs of 10 rounds."""

    def given_to_central(name, spec=data.spec, **settings):
        build, seen = getattr(methods, name), []
        module = importlib.import_module(build.__module__)
        named = lambda _, config, spec, room, **given: Given(given, room=room)

        def by_epoch(make):
            seen.append(make(10))
            return mock.Mock()  # Stands for a method that ``with_phases`` modifies.

        monkeypatch.setattr(module, "central", named)
        monkeypatch.setattr(module, "by_epoch", by_epoch)
        build(spec, **settings)
        return seen[0]

    return given_to_central


@pytest.fixture
def built_design(monkeypatch):
    """``(module, build, *args, **settings) ->`` the ``Design`` of an autoencoder."""

    def built_design(module, build, *args, **settings):
        designs = []

        def autoencoders(name, spec, config, design):
            designs.append(design)
            return mock.Mock()  # Stands for the method; the registry modifies it.

        module = importlib.import_module(module)
        monkeypatch.setattr(module, "autoencoders", autoencoders)
        build(*args, **settings)
        return designs[-1]

    return built_design


@pytest.fixture
def active_groups():
    """``(components, epochs) ->`` the groups trained in each epoch."""

    def active_groups(components, epochs):
        found = []
        for epoch in range(epochs):
            rounds = [10 * epoch, 10 * epoch + 9]  # First and last.
            plays = [[bool(p.when_fn(number)) for p in components] for number in rounds]
            assert plays[0] == plays[1]
            turns = zip(components, plays[0], strict=True)
            found.append([component.groups for component, playing in turns if playing])
        return found

    return active_groups
