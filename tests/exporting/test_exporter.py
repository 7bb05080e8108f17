"""Files of anonymizers: ONNX Runtime's outputs equal JAX's."""

import dataclasses
import functools
import hashlib
import json
import os
import pathlib

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("jax2onnx", reason="needs the extra `export`")

import onnx

from jaxanon import exporting, learners, methods
from jaxanon.core.run import Run
from jaxanon.exporting import agreement, onnx_graph

TINY = {"latent_dim": 3, "hidden_sizes": (8,)}
DIFFUSION = {
    "widths": (4,),
    "heads": 2,
    "num_inference_steps": 3,
    "num_train_timesteps": 20,
}
SETTINGS = {
    "blinder": TINY,
    "obscurenet": TINY,
    "attribute_vae": TINY,
    "cae": TINY,
    "dysan": {"predictor_filters": (8,), "filters": (8, 8)},
    "aae": {},
    "cgan": {"widths": (8, 4), "latent_dim": 4, "classes_to_hide": ("b",)},
    "timegan": {"features": (4, 4)},
    "orf": {},
    "privatehub": DIFFUSION,
    "deeprotect": {
        **{"low": (0.0, 0.0), "high": (20.0, 20.0), "hidden_sizes": (6, 4)},
        **{"radius": None, "mechanism": "grid", "epsilon": 2.0},
    },
}


@pytest.fixture(scope="module")
def exported(untrained, data, tmp_path_factory):
    """Returns ``exported(name)``: the run, its file, and the progress."""
    folder = tmp_path_factory.mktemp("exported")

    @functools.cache
    def exported(name):
        run, path = untrained(name, **SETTINGS[name]), folder / f"{name}.onnx"
        return run, path, exporting.export(run, path, windows=data.test.windows[:20])

    return exported


@pytest.mark.parametrize("name", SETTINGS)
def test_onnx_does_what_jax_does(name, exported):
    _, path, told = exported(name)
    assert told.windows == 20
    assert told.share == 1.0
    raw = path.read_bytes()
    assert told.size == len(raw)
    digest = hashlib.sha256(raw).hexdigest()
    beside = lambda ending: path.with_name(f"{name}.onnx.{ending}").read_text()
    assert beside("sha256") == f"{digest}  {name}.onnx\n"
    (entry,) = onnx.load(path).metadata_props
    facts = json.loads(entry.value)
    assert facts["method"] == name
    assert facts["input"] == {
        **{"name": "windows", "batch": 1, "time": 16, "rate_hz": 10.0},
        **{"channels": ["x", "y"], "units": ["g", "g"]},
    }
    assert facts["epsilon"] == (2.0 if name == "deeprotect" else None)
    assert facts["card"] == beside("md")
    assert "Any other information in the sensor data" in facts["card"]


@pytest.fixture(scope="module")
def run(exported):
    """The run with the fewest operations."""
    return exported("blinder")[0]


def test_half_the_weights_in_half_the_bytes(exported, data, tmp_path):
    run, _, whole = exported("blinder")
    shown = {"weights": "float16", "windows": data.test.windows[:20]}
    half = exporting.export(run, tmp_path / "half.onnx", **shown)
    assert half.share == 1.0  # Relative to JAX with the rounded weights.
    assert whole.rounding == 0.0 < 10 * half.median < half.rounding < 0.01
    stored = lambda told: sum(len(one.raw_data) for one in _weights(told.path))
    assert stored(half) / stored(whole) == pytest.approx(0.5, rel=1e-2)


def _weights(path):
    graph = onnx.load(path).graph
    return [one for one in graph.initializer if np.sum(np.array(one.dims) > 1) > 1]


def test_int8_is_near_and_its_weights_are_bytes(exported, data, tmp_path):
    run, *_ = exported("obscurenet")  # This graph has branches.
    windows = {"windows": data.test.windows[:20], "calibration": data.train.windows}
    told = exporting.export(run, tmp_path / "a.onnx", weights="int8", **windows)
    assert 1e-5 < told.median < 0.2  # Rounded, and still equal.
    kinds = {one.data_type for one in _weights(told.path)}
    assert kinds == {onnx.TensorProto.INT8}
    # Ranges come from the given windows, so zeros are useless.
    windows["calibration"] = 0 * data.train.windows
    worse = exporting.export(run, tmp_path / "b.onnx", weights="int8", **windows)
    assert worse.median > 4 * told.median


@pytest.mark.slow
def test_stablehlo_is_read_by_jax_alone(run, data, tmp_path):
    path = tmp_path / "phone.stablehlo"
    shown = data.test.windows[:10]
    told = exporting.export(run, path, format="stablehlo", windows=shown)
    raw = path.read_bytes()  # No path of this machine,
    package = pathlib.Path(exporting.__file__).parents[1]
    for place in (".py", package, pathlib.Path.cwd(), pathlib.Path.home()):
        assert os.fsencode(place) not in raw
    again = lambda: exporting.export(
        run, tmp_path / "b", format="stablehlo", windows=shown
    )
    assert told.digest == again().digest  # and no user name.
    assert told.share == 1.0
    facts = json.loads((tmp_path / "phone.stablehlo.json").read_text())
    graph = jax.export.deserialize(path.read_bytes())
    rng = np.random.default_rng(0)
    draws = [{k: v for k, v in d.items() if k != "name"} for d in facts["draws"]]
    draws = [exporting.Draw(**draw) for draw in draws]
    drawn = [
        agreement.sample(rng, draw._replace(shape=tuple(draw.shape))) for draw in draws
    ]
    assert graph.call(shown[:1], *drawn).shape == (1, 16, 2)
    assert {"cpu", "cuda"} <= set(graph.platforms)


def test_a_graph_that_does_something_else_is_not_written(
    run, data, tmp_path, monkeypatch
):
    right = onnx_graph.to_onnx

    def wrong(fn, *rest):
        return right(lambda windows, *drawn: fn(windows, *drawn) + 0.1, *rest)

    monkeypatch.setattr(onnx_graph, "to_onnx", wrong)
    path = tmp_path / "phone.onnx"
    with pytest.raises(ValueError, match=r"of 5 windows, but does on 0.0 %.*Nothing"):
        exporting.export(run, path, windows=data.test.windows[:5])
    assert not list(tmp_path.iterdir())


def test_a_graph_that_makes_no_numbers_is_not_written(run, data, tmp_path, monkeypatch):
    nothing = lambda raw, inputs: np.full((len(inputs), 16, 2), np.nan)
    monkeypatch.setattr(agreement, "run_graph", nothing)
    rounded = {"weights": "int8", "calibration": data.train.windows[:9]}
    with pytest.raises(ValueError, match="returns NaN or infinity for some of 5"):
        exporting.export(
            run, tmp_path / "a.onnx", windows=data.test.windows[:5], **rounded
        )
    assert not list(tmp_path.iterdir())


def test_what_is_drawn_matters_and_nothing_else_does(exported, data):
    run, path, _ = exported("blinder")
    rewritten, draws = exporting.explicit(
        lambda key, windows: run.method.anonymize(key, run.state, windows),
        data.test.windows[:1],
    )
    one, other = (
        agreement.examples(data.test.windows[:5], draws, seed=seed) for seed in (0, 1)
    )
    twice = [agreement.run_graph(path.read_bytes(), one) for _ in range(2)]
    np.testing.assert_array_equal(*twice)
    assert np.any(agreement.run_graph(path.read_bytes(), other) != twice[0])
    away = agreement.max_deviations(rewritten, twice[0], one, data.spec.std)
    assert np.all(away < 1e-4)


@pytest.mark.slow
def test_a_flip_of_some_windows_is_drawn_outside(untrained, data, tmp_path):
    settings = {"anonymization": "probabilistic", "flip_probability": 0.75}
    run, path = untrained("blinder", **TINY, **settings), tmp_path / "phone.onnx"
    told = exporting.export(run, path, windows=data.test.windows[:20])
    assert told.share == 1.0
    draws = json.loads(onnx.load(path).metadata_props[0].value)["draws"]
    # One for the latent, and one for the displayed class of the private attribute.
    assert [draw["law"] for draw in draws] == ["normal", "uniform"]
    shown = {"windows": np.float32(data.test.windows[:1])}
    shown["draw 0"] = np.zeros(draws[0]["shape"], np.float32)
    drawn = [np.full(draws[1]["shape"], x, np.float32) for x in (0.01, 0.74, 0.76)]
    flipped, edge, kept = agreement.run_graph(
        path.read_bytes(), [shown | {"draw 1": one} for one in drawn]
    )
    np.testing.assert_array_equal(flipped, edge)
    assert np.any(edge != kept)


@pytest.mark.parametrize(
    ("settings", "error", "why"),
    [
        ({"format": "tflite"}, ValueError, "format must be one of .* got 'tflite'"),
        ({"weights": "int4"}, ValueError, "weights must be one of .* got 'int4'"),
        ({"weights": "int8"}, ValueError, "requires calibration windows"),
        (
            {"weights": "int8", "format": "stablehlo", "calibration": [1]},
            ValueError,
            "use format='onnx'",
        ),
        ({"windows": np.ones((2, 9, 2))}, ValueError, "windows must be"),
        ({"format": "stablehlo"}, ValueError, "got 'phone.onnx' for stablehlo"),
    ],
)
def test_what_is_refused(run, tmp_path, settings, error, why):
    with pytest.raises(error, match=why):
        exporting.export(run, tmp_path / "phone.onnx", **settings)
    with pytest.raises(
        ValueError, match=r"must end in \.onnx .* 'phone.tflite' for onnx"
    ):
        exporting.export(run, tmp_path / "phone.tflite")
    with pytest.raises(ValueError, match=r"got 'phone.ONNX' for stablehlo"):
        exporting.export(run, tmp_path / "phone.ONNX", format="stablehlo")
    assert not list(tmp_path.iterdir())


def test_nothing_is_replaced_without_being_asked(run, data, tmp_path):
    path, shown = tmp_path / "phone.onnx", {"windows": data.test.windows[:2]}
    card = tmp_path / "phone.onnx.md"
    card.write_text("mine")
    with pytest.raises(FileExistsError, match=r"phone.onnx.md exists; pass overwrite"):
        exporting.export(run, path, **shown)
    assert card.read_text() == "mine"
    exporting.export(run, path, overwrite=True, **shown)
    assert card.read_text() != "mine"


def test_a_learner_rewrites_nothing(data, tmp_path):
    method = learners.build("fedavg", data.spec)
    run = Run(method, None, data.spec, None, [], {})
    with pytest.raises(TypeError, match="fedavg predicts activity but rewrites no"):
        exporting.export(run, tmp_path / "phone.onnx")


@pytest.mark.slow
def test_an_epsilon_leaves_on_a_grid_or_not_at_all(untrained, data, tmp_path):
    own = SETTINGS["deeprotect"]
    run = untrained("deeprotect", **own | {"mechanism": "laplace"})
    path = tmp_path / "phone.onnx"
    exporting.export(run, path, windows=data.test.windows[:5])
    facts = json.loads(onnx.load(path).metadata_props[0].value)
    assert [draw["law"] for draw in facts["draws"]] == ["discrete laplace"]
    assert "ε = 2 for each window of 1.6 s" in facts["card"]
    for rounded in ({"weights": "int8", "calibration": [1]}, {"weights": "float16"}):
        with pytest.raises(ValueError, match="so epsilon 2 would not hold"):
            exporting.export(run, path, overwrite=True, **rounded)
    published = {"mechanism": "laplace", "sensitivity": "published"}
    run = untrained("deeprotect", **own | published)
    with pytest.raises(ValueError, match="sensitivity 'published' has no noise"):
        exporting.export(run, path, overwrite=True)
    run = untrained("deeprotect", **own | {"mechanism": "l2"})
    with pytest.raises(ValueError, match="'l2' claims an epsilon that its float"):
        exporting.export(run, path, overwrite=True)


def test_what_the_converter_does_not_know_is_told(run, tmp_path):
    fourier = lambda key, state, windows: jax.numpy.fft.irfft(
        jax.numpy.fft.rfft(windows, axis=1), axis=1
    )
    method = run.method._replace(anonymize=fourier)
    run = dataclasses.replace(run, method=method)
    with pytest.raises(ValueError, match="blinder cannot be converted to ONNX"):
        exporting.export(run, tmp_path / "phone.onnx")


@given(st.floats(0, 99, width=16))
def test_what_rounding_moves_is_told_by_its_first_digit(rounding):
    told = exporting.moved(rounding)
    number = float(told.split(" at most ")[1].split(" ")[0])
    assert number == pytest.approx(rounding, rel=0.34)


SMALL_FILTERS = {"predictor_filters": (8,), "filters": (8, 8)}
SMALL_UNET = {"widths": (4,), "heads": 2}
REPLACING = {"black": ("a",), "gray": ("b",)}
OWN = {
    **dict.fromkeys(("dysan_gen", "dysan_msda", "olympus"), SMALL_FILTERS),
    **dict.fromkeys(("rae", "rae_aae"), REPLACING),
    **dict.fromkeys(("cloak", "privdiffuser"), SMALL_UNET),
    "occupancy_gan": SETTINGS["cgan"],
}
LAWS = {
    **dict.fromkeys(("aae", "gen", "msda", "orf", "rae", "rae_aae"), ()),
    "blinder": ("normal", "uniform"),  # It flips one of two classes.
    **dict.fromkeys(("fed_blinder", "kd_blinder"), ("normal", "integers")),
    **dict.fromkeys(("attribute_vae", "cae", "cvae"), ("integers", "normal")),
    **dict.fromkeys(("general_vae", "obscurenet"), ("integers", "normal")),
    **dict.fromkeys(("cgan", "occupancy_gan", "privatehub"), ("gumbel", "normal")),
    **dict.fromkeys(("cloak", "privdiffuser"), ("normal",)),
    **dict.fromkeys(("dysan", "dysan_gen", "dysan_msda", "olympus"), ("uniform",)),
    **{"deeprotect": ("discrete laplace",), "timegan": ("gumbel", "uniform")},
}


@pytest.mark.parametrize("name", methods.NAMES)
def test_what_every_method_draws_can_be_supplied(name, data):
    """Only traced: nothing is compiled or drawn."""
    classes = data.spec.classes | {"activity": ("a", "b", "c", "d")}
    spec = dataclasses.replace(data.spec, time=32, classes=classes)
    method = methods.build(name, spec, **SETTINGS.get(name, {}) | OWN.get(name, {}))
    windows = jax.ShapeDtypeStruct((1, 32, 2), np.float32)
    if name == "deeprotect":  # It compares its weights with one another.
        state = jax.jit(method.init)(jax.random.key(0))
        anonymize = lambda key, windows: method.anonymize(key, state, windows)
        _, draws = exporting.explicit(anonymize, windows)
    else:
        state = jax.eval_shape(method.init, jax.random.key(0))
        _, draws = exporting.explicit(method.anonymize, state, windows)
    assert tuple(draw.law for draw in draws) == LAWS[name]
    assert all(draw.shape[0] == 1 for draw in draws)
