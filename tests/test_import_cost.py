"""``import jaxanon.kernels`` loads only JAX."""

import json
import subprocess
import sys

PROGRAM = """
import json, sys, time
import jax
before = set(sys.modules)
start = time.perf_counter()
import {module}
seconds = time.perf_counter() - start
new = {{name.partition(".")[0] for name in set(sys.modules) - before}}
loaded = {{name.partition(".")[0] for name in sys.modules}}
strangers = sorted(new - {{"jax", "jaxanon"}} - set(sys.stdlib_module_names))
print(json.dumps([strangers, sorted(loaded), seconds]))
"""


def _fresh(module, tmp_path):
    """Returns the packages that ``module`` adds to JAX's, all loaded, and seconds."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM.format(module=module)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_kernels_load_nothing_beyond_jax(tmp_path):
    runs = [_fresh("jaxanon.kernels", tmp_path) for _ in range(3)]
    strangers, loaded, _ = runs[0]
    assert strangers == []
    assert not {"flax", "optax", "tensorflow_datasets"} & set(loaded)
    best = min(seconds for *_, seconds in runs)
    # Printed without a check, because it depends on the machine. The aim is 0.1 s.
    print(f"import jaxanon.kernels takes {best:.3f} s beyond import jax")


def test_the_probe_sees_a_heavy_import(tmp_path):
    strangers, _, _ = _fresh("jaxanon.federated", tmp_path)
    assert "optax" in strangers
