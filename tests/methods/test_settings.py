"""Whatever is given for a setting makes a config, or an error that names a setting."""

import dataclasses
import importlib
import pkgutil

import numpy as np
import pytest
from any_values import VALUES
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon import learners, methods

# What a config cannot do without, beside what is tried.
NEEDED = {
    "OccupancyGANConfig": {"hide": ("sit",)},
    "RAEConfig": {"black": ("sit",), "gray": ("walk",)},
    "RAEAAEConfig": {"black": ("sit",), "gray": ("walk",)},
}


def configs():
    """Every dataclass of settings in the rooms of methods and of learners."""
    found = {}
    for room in (methods, learners):
        for info in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            for name, value in vars(importlib.import_module(info.name)).items():
                if name.endswith("Config") and dataclasses.is_dataclass(value):
                    found[name] = value
    return found


CONFIGS = configs()


def test_there_are_as_many_as_methods_and_learners_have():
    assert len(CONFIGS) > 30
    assert {"BlinderConfig", "AtlasConfig", "CloakConfig", "ORFConfig"} < {*CONFIGS}


@pytest.mark.parametrize("name", sorted(CONFIGS))
@settings(max_examples=50)
@given(draw=st.data())
def test_settings_are_taken_or_refused_by_name(name, draw):
    config = CONFIGS[name]
    fields = [field.name for field in dataclasses.fields(config)]
    given_ = draw.draw(st.dictionaries(st.sampled_from(fields), VALUES, max_size=3))
    try:
        made = config(**(NEEDED.get(name, {}) | given_))
    except (TypeError, ValueError) as error:
        assert any(field in str(error) for field in fields), (given_, repr(error))
        return
    # What was taken is of the kind of what stands there without asking.
    for field in dataclasses.fields(config):
        usual = field.default
        if isinstance(usual, tuple | str | bool):
            value = getattr(made, field.name)
            assert isinstance(value, (type(usual), np.bool_)), (field.name, value)


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("hidden", 4, "several, in a tuple"),
        ("hidden", None, "several, in a tuple"),
        ("guided", "yes", "True or False"),
        ("guided", 1, "True or False"),
        ("averaging", "0.5", "a number"),
        ("cohort", (0.5,), "a number"),
        ("cohort", True, "a number"),
        ("latent", (3, 4), "whole"),
        ("form", 3, "a word"),
    ],
)
def test_a_setting_of_another_kind_is_refused(name, value, kind):
    with pytest.raises(TypeError, match=f"{name} must be {kind}, got"):
        CONFIGS["BlinderConfig"](**{name: value})


@pytest.mark.parametrize(
    ("config", "name", "value", "refused"),
    [
        ("ObscureNetConfig", "hidden", 8, "hidden must be several, in a tuple, got 8"),
        ("GENConfig", "hidden", 8, "hidden must be several, in a tuple, got 8"),
        ("RAEConfig", "black", "jog", "black must be several, in a tuple, got 'jog'"),
        ("DEEProtectConfig", "low", -1.0, "low must be several, in a tuple, got -1.0"),
        ("DEEProtectConfig", "low", ("a",), r"each of low must be a number, got \('a'"),
        ("PrivateHubConfig", "hide", (1,), r"each of hide must be a word, got \(1,\)"),
        ("DEEProtectConfig", "radius", "1", "radius must be a number, got '1'"),
    ],
)
def test_what_may_be_none_and_what_tuples_hold_are_of_a_kind(
    config, name, value, refused
):
    with pytest.raises(TypeError, match=refused):
        CONFIGS[config](**{name: value})


def test_a_diffusion_without_a_level_is_refused():
    with pytest.raises(ValueError, match="widths must name a level at least, got"):
        CONFIGS["CloakConfig"](widths=())
