"""Every config enforces its declared bounds, and errors name the field."""

import copy
import dataclasses
import importlib
import math
import pickle
import pkgutil
import re
import typing

import hypothesis
import numpy as np
import pytest
from any_values import VALUES
from hypothesis import given
from hypothesis import strategies as st

import jaxanon
from jaxanon.kernels.bounds import Range, check, declared, finite, setting

# Settings that a config requires in addition to the tested one.
NEEDED = {
    "OccupancyGANConfig": {"classes_to_hide": ("sit",)},
    "RAEConfig": {"black": ("sit",), "gray": ("walk",)},
    "RAEAAEConfig": {"black": ("sit",), "gray": ("walk",)},
    "Steps": {"num_steps": 2},
    "PoissonSampling": {
        "sampling_probability": 0.5,
        "expected_batch_size": 2.0,
        "max_examples": 10,
    },
    "SampledGaussian": {"noise_multiplier": 1.0},
}
PACKAGES = ("methods", "learners", "energy", "federated", "privacy")


def configs():
    """Returns every dataclass of these packages that has bounds and can be built."""
    found = {}
    for package in PACKAGES:
        room = importlib.import_module(f"{jaxanon.__name__}.{package}")
        for info in pkgutil.walk_packages(room.__path__, room.__name__ + "."):
            for name, value in vars(importlib.import_module(info.name)).items():
                if isinstance(value, type) and dataclasses.is_dataclass(value):
                    if declared(value) and name != "Settings":
                        found[name] = value
    return found


CONFIGS = configs()
EACH = pytest.mark.parametrize("name", sorted(CONFIGS))


def made(name, **settings):
    return CONFIGS[name](**(NEEDED.get(name, {}) | settings))


def entry_type(config, field):
    """Returns the number type of a field, or of its tuple's entries; else None."""
    hint = typing.get_type_hints(config)[field]
    inner = str(hint)
    kinds = [kind for kind in (int, float) if re.search(rf"\b{kind.__name__}\b", inner)]
    return kinds[0] if kinds and "dict" not in inner else None


def is_tuple(config, field):
    return "tuple" in str(typing.get_type_hints(config)[field])


def ends(range_):
    """Returns ``(end, whether it is in the range, outward direction)`` of each end."""
    table = (range_.above, False, -1), (range_.at_least, True, -1)
    table += (range_.below, False, 1), (range_.at_most, True, 1)
    return [end for end in table if end[0] is not None]


def beyond(end, outwards, kind):
    """Returns the next number outside the range, or inside by ``-outwards``."""
    return end + outwards if kind is int else math.nextafter(end, outwards * math.inf)


def trials(config, field):
    """Yields values of a field and whether its declaration accepts them."""
    bounds = declared(config)[field]
    kind, several = entry_type(config, field), is_tuple(config, field)
    count = max(bounds.min_length, bounds.lengths[-1] if bounds.lengths else 1)
    for end, belongs, outwards in ends(bounds.range):
        inside = beyond(end, -outwards, kind)
        for value, fits in (
            (beyond(end, outwards, kind), False),
            (kind(end), belongs),
            (inside, True),
        ):
            yield (kind(inside),) * (count - 1) + (value,) if several else value, fits
    if bounds.range.words and kind is float:
        for value in (math.nan, math.inf, -math.inf):
            yield (value,) * count if several else value, False
    if bounds.choices:
        yield from ((value, True) for value in bounds.choices)
        yield "no such word", False
    if several and (bounds.lengths or bounds.min_length):
        for length in range(count + 3):
            fits = length in bounds.lengths or 0 < bounds.min_length <= length
            yield (4,) * length, fits


def test_there_are_as_many_as_methods_learners_and_homes_have():
    assert len(CONFIGS) > 50
    some = "BlinderConfig", "AtlasConfig", "CloakConfig", "ORFConfig", "PFDRLSettings"
    assert {*some, "DQNConfig", "PoissonSampling", "ChannelConfig"} < {*CONFIGS}


@EACH
def test_every_number_declares_a_range_and_every_field_its_help(name):
    config = CONFIGS[name]
    for field in dataclasses.fields(config):
        assert field.metadata["help"], field.name
        if entry_type(config, field.name) and field.name not in ("low", "high"):
            assert declared(config)[field.name].range.words, field.name


@EACH
def test_values_at_the_ends_are_taken_or_refused_as_declared(name):
    config, usual = CONFIGS[name], made(name)
    tried = 0
    for field, bounds in declared(config).items():
        for value, fits in trials(config, field):
            tried += 1
            if fits:  # Relations with other fields come after ``check``.
                changed = copy.copy(usual)
                object.__setattr__(changed, field, value)
                check(changed)
                continue
            with pytest.raises(ValueError) as refused:
                made(name, **{field: value})
            told = str(refused.value)
            assert re.match(rf"(each of )?{field} must ", told), told
            assert f"got {value!r}" in told
            ways = bounds.range.words, f"one of {bounds.choices}", bounds.entries
            assert any(way and way in told for way in ways), told
    assert tried


@EACH
def test_values_of_another_type_are_refused_by_name(name):
    wrong = {int: 2.5, float: "0.5", str: 3, bool: "no", tuple: 4}
    for field, hint in typing.get_type_hints(CONFIGS[name]).items():
        first, *_ = [one for one in typing.get_args(hint) or (hint,)]
        kind = tuple if is_tuple(CONFIGS[name], field) else first
        if kind not in wrong or "dict" in str(hint):
            continue
        for value in (wrong[kind], np.ones(2), *([True] if kind is not bool else [])):
            with pytest.raises(TypeError, match=f"^{field} must be ") as refused:
                made(name, **{field: value})
            assert f"got {value!r}" in str(refused.value)
        if "None" not in str(hint):
            with pytest.raises(TypeError, match=f"^{field} must be .*, got None"):
                made(name, **{field: None})


@EACH
def test_configs_stay_frozen_dataclasses_that_compare_and_pickle(name):
    one = made(name)
    assert one == made(name) and pickle.loads(pickle.dumps(one)) == one
    assert dataclasses.replace(one) == one
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(one, dataclasses.fields(one)[0].name, None)


@EACH
@hypothesis.settings(max_examples=50)
@given(draw=st.data())
def test_settings_are_taken_or_refused_by_name(name, draw):
    fields = [field.name for field in dataclasses.fields(CONFIGS[name])]
    given_ = draw.draw(st.dictionaries(st.sampled_from(fields), VALUES, max_size=3))
    try:
        config = made(name, **given_)
    except (TypeError, ValueError) as error:
        assert any(field in str(error) for field in fields), (given_, repr(error))
        return
    # An accepted value has the type of the default.
    for field in dataclasses.fields(config):
        if isinstance(field.default, tuple | str | bool):
            value = getattr(config, field.name)
            assert isinstance(value, (type(field.default), np.bool_)), given_


@dataclasses.dataclass(frozen=True, kw_only=True)
class Example:
    widths: tuple[int, ...] = setting((8,), at_least=1, min_length=1, help="widths")
    share: float | None = setting(None, above=0, at_most=1, remedy="leave it out")
    names: tuple[str, ...] = ()
    kind: str = setting("a", choices={"a": 1, "b": 2}, help="kind")
    ends: tuple[float, ...] = setting((0.0,), lengths=(1, 2), help="ends")

    __post_init__ = check


@pytest.mark.parametrize(
    ("settings", "error", "told"),
    [
        ({"widths": (8, 0)}, ValueError, "each of widths must be >= 1, got (8, 0)."),
        ({"widths": ()}, ValueError, "widths must have at least 1 entry, got ()."),
        ({"widths": 4}, TypeError, "widths must be a tuple, got 4."),
        ({"widths": (2.5,)}, TypeError, "each of widths must be whole, got (2.5,)."),
        ({"widths": (True,)}, TypeError, "each of widths must be whole, got (True,)."),
        ({"share": 2}, ValueError, "share must be in (0, 1], got 2; leave it out."),
        ({"share": 10**400}, ValueError, "share must be in (0, 1], got 1000"),
        ({"share": np.float32(np.nan)}, ValueError, "share must be in (0, 1], got"),
        ({"share": np.array(0.5)}, TypeError, "share must be a number, got array(0.5)"),
        ({"names": ("a", 1)}, TypeError, "each of names must be a string, got ('a', 1"),
        ({"kind": "c"}, ValueError, "kind must be one of ('a', 'b'), got 'c'."),
        ({"ends": ()}, ValueError, "ends must have 1 or 2 entries, got ()."),
    ],
)
def test_errors_name_field_bound_and_value(settings, error, told):
    with pytest.raises(error, match=f"^{re.escape(told)}"):
        Example(**settings)


def test_both_spellings_of_what_may_be_none_are_checked():
    @dataclasses.dataclass(frozen=True)
    class Other:
        share: typing.Optional[float] = setting(None, above=0)  # noqa: UP045
        table: dict = setting(default_factory=dict, help="of any kind")
        __post_init__ = check

    assert Other().share is None and Other(0.5).table == {}
    with pytest.raises(ValueError, match="share must be finite and > 0, got 0"):
        Other(0)


def test_types_are_checked_before_bounds():
    with pytest.raises(TypeError, match="share must be a number"):
        Example(widths=(0,), share="1")


def test_numbers_of_numpy_pass_as_python_s_do():
    made = Example(widths=(np.int64(4), 10**400), share=np.float32(0.5))
    assert made.share == 0.5


@pytest.mark.parametrize(
    ("range_", "words", "finite_words"),
    [
        (Range(above=0), "> 0", "finite and > 0"),
        (Range(at_least=0.5), ">= 0.5", "finite and >= 0.5"),
        (Range(below=1), "< 1", "finite and < 1"),
        (Range(at_most=-1), "<= -1", "finite and <= -1"),
        (Range(above=0, at_most=1), "in (0, 1]", "in (0, 1]"),
        (Range(at_least=0, below=1), "in [0, 1)", "in [0, 1)"),
    ],
)
def test_ranges_in_words(range_, words, finite_words):
    assert (range_.words, range_.finite_words) == (words, finite_words)


def test_help_has_the_bounds_and_lists_choices_that_it_does_not_explain():
    told = {
        field.name: field.metadata.get("help") for field in dataclasses.fields(Example)
    }
    assert told["widths"] == "widths; >= 1; at least 1 entry"
    assert told["kind"] == "kind; one of a, b"
    explained = setting("a", choices=("a", "b"), help="a: the first; b: the second")
    assert explained.metadata["help"] == "a: the first; b: the second"


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -1, 10**400])
def test_arguments_are_finite(value):
    with pytest.raises(ValueError, match="x must be finite and >= 0, got"):
        finite(zero=True, x=value)
    with pytest.raises(ValueError, match="x must be finite and > 0, got 0"):
        finite(zero=False, x=0)
    finite(zero=True, x=0, y=np.float32(1))
    for wrong in ("1", None, True, np.ones(1), 1j):
        with pytest.raises(TypeError, match="x must be a number, got"):
            finite(zero=True, x=wrong)
