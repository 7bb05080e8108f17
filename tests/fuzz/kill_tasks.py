"""Tasks that write into a folder and are killed, and their results."""

import hashlib
import importlib.util
import json
import pathlib

import fuzz_raw
import numpy as np

GRID = {"rate": [0.25, 0.5, 0.75]}


def data_of(place):
    """Loads the file that ``prepare`` wrote."""
    from jaxanon import datasets

    return datasets.load(
        str(place / "waves.npz"), public="activity", private=["gender"]
    )


def prepare(place):
    """Writes the tasks' input: windows, and raw files of a data set."""
    random_ = np.random.default_rng(0)
    np.savez(
        place / "waves.npz",
        windows=random_.normal(size=(72, 8, 2)).astype(np.float32),
        subject=np.repeat(np.arange(3), 24),
        activity=np.arange(72) % 2,
        gender=np.arange(72) // 2 % 2,
        split=(np.arange(72) % 24 >= 16).astype(int),
    )
    (place / "raw").mkdir()
    fuzz_raw.motion_sense(place / "raw")
    fuzz_raw.wisdm(place / "raw")


def digest(*arrays):
    """Returns a SHA-256 of all numbers, in order."""
    sha = hashlib.sha256()
    for array in arrays:
        sha.update(np.ascontiguousarray(array).tobytes())
    return sha.hexdigest()


def run_digest(run):
    """Returns a digest of a run's state and losses, without its duration."""
    import jax

    told = [[row["round"], row["losses"]] for row in run.history]
    return digest(*jax.tree.leaves(run.state)), json.dumps(told)


def toy():
    """Returns a method of a few numbers, because the tests target the disk."""
    path = pathlib.Path(__file__).resolve().parents[1] / "support/known.py"
    spec = importlib.util.spec_from_file_location("known", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.build


def train(place, out):
    from jaxanon.training import trainer

    data = data_of(place)
    quiet = {"progress": False, "checkpoint_s": 0.0, "resume": True}
    trainer.train(toy()(data.spec), data, epochs=4, output_dir=out / "run", **quiet)


def trained(out):
    return opened(out / "run")


def opened(folder):
    """Returns the digest of a toy run."""
    import jax

    from jaxanon.core.run import Run
    from jaxanon.training import checkpoint, metrics_log, run_folder

    config = run_folder.read_config(folder)
    method = toy()(None)
    like = jax.eval_shape(method.init, jax.random.key(0))
    state = checkpoint.restore_state(folder, config, like)
    history = metrics_log.read(folder, int(state.round))
    return run_digest(Run(method, state, None, folder, history, config))


def train_real(place, out):
    """Trains a run that the command line can open for ``anonymize``."""
    from jaxanon import methods
    from jaxanon.training import trainer

    data = data_of(place)
    method = methods.orf(data.spec)
    trainer.train(method, data, epochs=1, output_dir=out / "run", progress=False)


def sweep(place, out):
    import jaxanon as ja

    ja.sweep(
        toy(),
        data_of(place),
        grid=GRID,
        epochs=2,
        output_dir=out / "sweep",
        resume=True,
        chunk_size=1,
        progress=False,
    )


def swept(out):
    from jaxanon.sweeps import folder as sweeps_folder

    told = sweeps_folder.read(out / "sweep")
    runs = sorted((out / "sweep").glob("member-*"))
    members = [opened(folder) for folder in runs]
    return json.dumps(members), sorted(told)


def anonymize(place, out):
    from jaxanon.cli import app

    words = ["anonymize", str(place / "run"), "--input", str(place / "waves.npz")]
    words += ["--output", str(out / "safe.npy"), "--seed", "3", "--overwrite"]
    if app.main(words):
        raise RuntimeError("anonymize was refused")


def anonymized(out):
    return digest(np.load(out / "safe.npy"))


def export(place, out):
    from jaxanon.cli import app

    words = ["datasets", "export", "smartwatch", "--output", str(out / "watch.npz")]
    if app.main([*words, "--overwrite"]):
        raise RuntimeError("export was refused")


def exported(out):
    with np.load(out / "watch.npz") as file:
        return {name: digest(file[name]) for name in file.files}


def convert(place, out):
    """Exports to StableHLO with JAX only: three files that belong together."""
    from jaxanon.cli import app

    words = ["export", str(place / "run"), "--output", str(out / "model.mlir")]
    words += ["--dataset", str(place / "waves.npz"), "--format", "stablehlo"]
    if app.main([*words, "--overwrite"]):
        raise RuntimeError("export was refused")


def converted(out):
    """Returns the digest and notes; the stored digest must match the file."""
    found = hashlib.sha256((out / "model.mlir").read_bytes()).hexdigest()
    told = (out / "model.mlir.sha256").read_text()
    assert told.startswith(found), told
    return found, (out / "model.mlir.md").read_text()


def dataset(place, out):
    from jaxanon.datasets import registry, store

    for name in ("motion_sense", "wisdm"):
        parts = store.read(registry.find(name), place / "raw", out / "cache")
        told = digest(*(part.rows for part in parts))
        (out / f"{name}.txt").write_text(told)  # The digests to compare.


def prepared(out):
    return [(out / f"{name}.txt").read_text() for name in ("motion_sense", "wisdm")]


def spend(place, out):
    from jaxanon.edge import Budget

    first, second = (Budget(out / f"{name}.json", 100.0) for name in ("a", "b"))
    while first.spent < 10 or second.spent < 10:
        first.charge(0.5)
        second.charge(0.5)


def spent(out):
    """Returns the spent budget: at least the charged one, and one more after a kill."""
    from jaxanon.edge import Budget

    both = [Budget(out / f"{name}.json", 100.0).spent for name in ("a", "b")]
    assert both[0] >= both[1] and min(both) >= 10, both
    return None


TASKS = {
    "train": (train, trained),
    "sweep": (sweep, swept),
    "anonymize": (anonymize, anonymized),
    "export": (export, exported),
    "model": (convert, converted),
    "dataset": (dataset, prepared),
    "budget": (spend, spent),
}
