"""``jaxanon sample``: windows and streams of named classes, and what is refused."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxanon.cli import app

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("built_plainly")]

TINY = "--widths 4 --heads 1 --batch-size 16".split()
TINY += "--num-train-timesteps 6 --num-inference-steps 2".split()


@pytest.fixture(scope="module")
def hub(file, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "hub"
    named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    words = [
        "train",
        "privatehub",
        *named,
        "--output-dir",
        str(out),
        "--epochs",
        "1",
        *TINY,
    ]
    assert app.main(words) == 0
    return out


@pytest.fixture
def sample(hub, tmp_path, opened_once):
    """``(*words, out=...) -> exit status``."""

    def sample(*words, out="made.npz"):
        given = [str(word) for word in words]
        return app.main(["sample", str(hub), "--output", str(tmp_path / out), *given])

    return sample


def test_windows_of_named_classes_are_written(sample, tmp_path, capsys):
    assert sample("--label", "fast", "slow", "--count", 3, "--seed", 1) == 0
    assert "6 windows of 8 samples: " in " ".join(capsys.readouterr().out.split())
    made = np.load(tmp_path / "made.npz")
    names = ["activity", "activity_names", "channels", "rate_hz", "units", "windows"]
    assert sorted(made) == names
    assert len(made["channels"]) == len(made["units"]) == 2 and made["rate_hz"] == 1
    assert made["windows"].shape == (6, 8, 2) and made["windows"].dtype == np.float32
    assert made["activity"].tolist() == [1, 1, 1, 0, 0, 0]
    assert made["activity_names"].tolist() == ["slow", "fast"]
    assert sample("--label", "fast", "--seed", 1) == 2  # Nothing is overwritten.
    assert (
        "made.npz exists; pass overwrite=True (--overwrite)" in capsys.readouterr().err
    )
    again = ("--label", "fast, slow", "--count", 3, "--seed", 1)
    assert sample(*again, out="again.npz") == 0
    same = np.load(tmp_path / "again.npz")["windows"]
    np.testing.assert_array_equal(same, made["windows"])
    assert sample(*again[:-2], out="new.npz") == 0
    assert not np.allclose(np.load(tmp_path / "new.npz")["windows"], same)


def test_streams_are_as_long_as_asked_for(sample, tmp_path, capsys):
    assert sample("--label", "fast", "--seconds", 21) == 0  # At 1 Hz.
    assert np.load(tmp_path / "made.npz")["windows"].shape == (1, 21, 2)
    assert sample("--label", "fast", "--seconds", 5, out="short.npz") == 2
    said = capsys.readouterr().err
    assert "seconds must be at least a window's 8 s at 1 Hz (rate_hz" in said


def test_windows_obey_and_avoid_as_told(sample, tmp_path):
    def made(*words):
        given = "--label", "fast", "--count", 4, "--seed", 1, "--overwrite", *words
        assert sample(*given) == 0
        return np.load(tmp_path / "made.npz")["windows"]

    plain = made()
    changed = [
        ("--guidance-scale", 4),
        ("--num-inference-steps", 5),
        ("--num-inference-steps", 5, "--sampler", "dpmpp_2m"),
        ("--avoid", "gender=f"),
        ("--avoid", "gender=m"),
        ("--avoid", "gender=m", "--negative-guidance-scale", 3),
    ]
    others = [made(*words) for words in changed]
    for number, one in enumerate(others):
        assert all(not np.allclose(one, x) for x in [plain, *others[:number]])
    none = made("--avoid", "gender=m", "--negative-guidance-scale", 0)
    np.testing.assert_allclose(none, plain, rtol=1e-4, atol=1e-5)


def test_what_is_refused(sample, capsys):
    refused = [
        (("--label", "fast", "--avoid", "gender"), {}, "--avoid must be ATTRIBUTE=NA"),
        (("--label", "fast", "--avoid", "size=1"), {}, "of {'activity': ('slow', 'f"),
        (
            ("--label", "fast", "--negative-guidance-scale", 2),
            {},
            "requires --avoid",
        ),
        (
            ("--label", "fast", "--avoid", "activity=fast"),
            {},
            "must differ from --label",
        ),
        (("--label", "fast", "--seconds", "nan"), {}, "seconds must be finite, got n"),
        (("--label", "fast", "--seconds", "inf"), {}, "seconds must be finite, got i"),
        (
            ("--label", "hop"),
            {},
            "--label must be among ('slow', 'fast'), classes of 'act",
        ),
        (("--label", "fast,fast"), {}, "--label must name each class once"),
        (("--label", "fast", "--sampler", "euler"), {}, "sampler must be one of"),
        (("--label", "fast", "--count", 0), {}, "--count must be >= 1, got 0"),
        (
            ("--label", "fast"),
            {"out": "made.npy"},
            "--output must end in .npz, got",
        ),
    ]
    for words, given, message in refused:
        assert sample(*words, **given) == 2
        assert message in capsys.readouterr().err


def test_what_does_not_fit_into_memory_is_refused(sample, capsys, monkeypatch):
    # Windows of 8 samples of 2 channels, at 1 Hz: 64 bytes each, and twice that.
    monkeypatch.setattr("jaxanon.federated.engine.memory.free_on_host", lambda: 384)
    assert sample("--label", "fast", "--count", 3, out="three.npz") == 0
    assert sample("--label", "fast", "--seconds", 24, out="long.npz") == 0
    for words in (("--count", 4), ("--count", 10**12), ("--seconds", 25)):
        assert sample("--label", "fast", *words) == 2
        assert "must fit into 3.58e-07 GiB" in capsys.readouterr().err
    monkeypatch.setattr("jaxanon.federated.engine.memory.free_on_host", lambda: None)
    assert sample("--label", "fast", out="one.npz") == 0  # Where nobody says.


def test_a_method_that_makes_none_says_so_first(file, tmp_path, capsys):
    named = ["--dataset", str(file), "--public", "activity", "--private", "gender"]
    out = str(tmp_path / "run")
    assert app.main(["train", "orf", *named, "--output-dir", out, "--epochs", "1"]) == 0
    words = ["--label", "nothing", "--output", str(tmp_path / "made.npz")]
    assert app.main(["sample", out, *words]) == 2
    assert "orf cannot generate windows; train" in capsys.readouterr().err


def test_many_are_made_in_parts_and_labels_are_checked(hub, opened, monkeypatch):
    run = opened(hub)
    monkeypatch.setattr("jaxanon.core.run.BATCH", 6)
    labels = np.arange(7) % 2
    made = run.sample(jax.random.key(0), {"activity": labels})
    assert made.shape == (7, 8, 2) and not np.allclose(made[0], made[6])
    with pytest.raises(ValueError, match=r"labels\['activity'\] must be in \[0, 2\)"):
        run.sample(jax.random.key(0), {"activity": np.array([0, 2])})
    with pytest.raises(ValueError, match="N at least 1"):
        run.sample(jax.random.key(0), {})
    for wrong in ("fast", [0, 1], np.arange(2)):
        with pytest.raises(
            TypeError, match=r"a dict of int\[N\] by attribute, such as"
        ):
            run.sample(jax.random.key(0), wrong)
        with pytest.raises(TypeError, match=r"avoid must be a dict of int\[N\]"):
            run.sample(jax.random.key(0), {"activity": [0]}, avoid=wrong)
    with pytest.raises(ValueError, match=r"classes\['activity'\] must be int\[N\]"):
        run.sample(jax.random.key(0), {"activity": 1})
    state = run.state._replace(
        params=jax.tree.map(lambda x: x * np.nan, run.state.params)
    )
    with pytest.raises(
        FloatingPointError, match="privatehub computed windows that are not"
    ):
        dataclasses.replace(run, state=state).sample(
            jax.random.key(0), {"activity": [0]}
        )
    other = dataclasses.replace(run, method=run.method._replace(generate=None))
    with pytest.raises(TypeError, match="cannot generate windows; train privateh"):
        other.sample(jax.random.key(0), {"activity": [0]})
