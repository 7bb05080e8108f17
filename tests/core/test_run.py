"""Anonymization of any number of windows with one program."""

import dataclasses
import pathlib
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxanon import datasets, report
from jaxanon.core.method import Adjustable, Generation
from jaxanon.core.run import BATCH, Run
from jaxanon.federated.engine.algorithm import State
from jaxanon.methods import Method
from jaxanon.methods.guided_diffusion.guidance import GuidedConfig

SPEC = datasets.Spec(
    name="toy",
    preset="toy",
    channels=("x", "y"),
    units=("g", "g"),
    rate_hz=10.0,
    time=4,
    public="activity",
    private=("gender",),
    classes={"activity": ("a", "b"), "gender": ("f", "m"), "subject": ("1",)},
    mean=(0.0, 0.0),
    std=(1.0, 1.0),
    split="given",
)


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ({"round": 6, "epoch": 1.5}, {"done": 1.5, "asked": 2}),
        ({"round": 6, "epoch": 2.0}, None),
        ({"round": 5, "epoch": 1.5}, None),  # Metrics that end before the state.
        ({"round": 6}, None),
    ],
)
def test_a_run_that_was_interrupted_says_so(last, told):
    state = types.SimpleNamespace(round=jnp.int32(6))
    run = dataclasses.replace(RUN, state=state, history=[last], config={"epochs": 2})
    assert run.unfinished == told
    assert dataclasses.replace(run, history=[]).unfinished is None
    assert dataclasses.replace(run, config={}).unfinished is None
    words = report.unfinished({"done": 1.5, "asked": 2})
    assert words == ["Unfinished: 1.5 of 2 epochs are done; continue with --resume."]


def test_a_run_is_told_in_one_line_and_not_by_its_arrays():
    state = types.SimpleNamespace(round=jnp.int32(6), params=jnp.arange(1000.0))
    run = dataclasses.replace(RUN, state=state, folder=pathlib.Path("runs") / "one")
    assert repr(run) == "Run('toy', round=6, folder='runs/one')"
    run = dataclasses.replace(run, state=None, folder=None)
    assert repr(run) == "Run('toy', round=None, folder=None)"
    traced = []

    def told(round_):
        state = types.SimpleNamespace(round=round_)
        traced.append(repr(dataclasses.replace(RUN, state=state)))

    jax.make_jaxpr(told)(jnp.int32(6))
    assert traced[0].startswith("Run('toy', round=")


def noisy(key, state, windows):
    return windows + state * jax.random.normal(key, windows.shape)


RUN = Run(
    Method("toy", None, SPEC, None, None, None, None, anonymize=noisy),
    jnp.float32(0.5),
    SPEC,
    None,
    [],
    {},
)


@pytest.mark.parametrize("num", [0, 1, BATCH, BATCH + 3])
def test_any_number_of_windows(num):
    windows = np.ones((num, 4, 2))
    safe = RUN.anonymize(jax.random.key(0), windows)
    assert safe.shape == (num, 4, 2) and safe.dtype == np.float32
    again = RUN.anonymize(jax.random.key(0), windows)
    np.testing.assert_array_equal(safe, again)


def test_a_window_does_not_depend_on_those_after_it_and_batches_differ():
    windows = np.ones((2 * BATCH, 4, 2), np.float32)
    whole = RUN.anonymize(jax.random.key(0), windows)
    part = RUN.anonymize(jax.random.key(0), windows[:7])
    np.testing.assert_array_equal(part, whole[:7])
    assert np.all(whole[:BATCH] != whole[BATCH:])


def test_another_key_gives_another_result():
    windows = np.ones((3, 4, 2), np.float32)
    one, two = (RUN.anonymize(jax.random.key(seed), windows) for seed in (0, 1))
    assert np.all(one != two)


def test_says_what_was_wrong():
    key = jax.random.key(0)
    with pytest.raises(TypeError, match="typed PRNG key such as .* got int"):
        RUN.anonymize(7, np.ones((1, 4, 2)))
    with pytest.raises(
        ValueError, match=r"float\[N, 4, 2\].* x, y\), got shape \(4, 2\)"
    ):
        RUN.anonymize(key, np.ones((4, 2)))
    with pytest.raises(ValueError, match=r"got shape \(1, 4, 3\)"):
        RUN.anonymize(key, np.ones((1, 4, 3)))
    with pytest.raises(TypeError, match="windows must be real numbers, got dtype <U1"):
        RUN.anonymize(key, np.full((1, 4, 2), "a"))
    windows = np.ones((3, 4, 2))
    for bad in (np.nan, np.inf):
        windows[2, 1, 0] = bad
        with pytest.raises(
            ValueError, match="NaN or infinity in 1 of 3, first at index 2"
        ):
            RUN.anonymize(key, windows)


def test_losses_are_of_windows_with_their_labels():
    """One for each window, and of an existing class; a gather must not clip it."""
    losses = lambda key, state, windows, labels: {"all": jnp.zeros(len(windows))}
    run = dataclasses.replace(
        RUN, method=RUN.method._replace(generate=Generation(None, losses=losses))
    )
    ask = lambda labels: run.window_losses(
        jax.random.key(0), np.ones((3, 4, 2)), {"activity": np.array(labels)}
    )
    assert ask([0, 1, 1])["all"].shape == (3,)
    for labels, message in (
        ([0, 1, 1, 0], r"must be int\[3\], one per window, got int64\[4\]"),
        ([0, 1, 2], r"must be in \[0, 2\), got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            ask(labels)


def test_weights_that_rewriting_heeds_may_be_set_anew():
    shifts = lambda key, state, windows: windows + state.hyper["guidance_scale"]
    config = GuidedConfig(guidance_scale=0.5)
    heeds = RUN.method._replace(
        config=config, anonymize=shifts, adjustable=Adjustable(("guidance_scale",))
    )
    state = State(jnp.int32(3), {}, {}, {"guidance_scale": jnp.float32(0.5)})
    run = dataclasses.replace(RUN, method=heeds, state=state)
    windows = np.ones((2, 4, 2), np.float32)
    given = jax.random.key(0), windows
    assert (run.adjusted(guidance_scale=2).anonymize(*given) == 3).all()
    assert (run.anonymize(*given) == 1.5).all()  # Unchanged.
    assert run.adjusted().state.hyper == state.hyper
    with pytest.raises(ValueError, match="guidance_scale must be finite and >= 0"):
        run.adjusted(guidance_scale=-1)
    with pytest.raises(
        ValueError, match=r"one of \['guidance_scale'\] .* got \['ema_decay'\]"
    ):
        run.adjusted(guidance_scale=1, ema_decay=0.5)


def test_windows_that_are_made_again_are_not_compiled_again():
    traced = []

    def sample(key, state, classes, *, samples):
        traced.append(samples)
        shape = len(classes["activity"]), samples, 2
        return state * jax.random.normal(key, shape)

    run = dataclasses.replace(
        RUN, method=RUN.method._replace(generate=Generation(sample))
    )
    wanted = {"activity": np.zeros(3, int)}
    made = [run.sample(jax.random.key(0), wanted) for _ in range(2)]
    np.testing.assert_array_equal(*made)
    assert traced == [4]
    assert run.sample(jax.random.key(0), wanted, seconds=0.8).shape == (3, 8, 2)
    assert traced == [4, 8]


def test_data_are_told_in_a_line():
    windows = datasets.Windows(np.zeros((3, 4, 2)), {"activity": np.arange(3)})
    data = datasets.Data(SPEC, windows, windows._replace(windows=np.zeros((1, 4, 2))))
    assert repr(windows) == "Windows(shape=(3, 4, 2), labels=['activity'])"
    assert repr(data) == (
        "Data('toy', windows of 4 x 2, 3 for training and 1 for testing, split by "
        "'given', public='activity', private=('gender',))"
    )
    # Any substitute for the arrays.
    assert repr(jax.tree.map(lambda x: x.dtype, windows)).startswith("Windows(shape=()")
