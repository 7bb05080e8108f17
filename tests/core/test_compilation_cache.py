"""Compiled programs stay on disk, in the user's folder or where the user says."""

import os
import subprocess
import sys

import pytest

TRAIN = """
import sys, jax, jax.numpy as jnp
from jaxanon.core.compilation_cache import keep_compiled_programs
{before}
keep_compiled_programs()
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.jit(lambda x: jnp.sin(x) + 1)(1.0)
print(jax.config.jax_compilation_cache_dir or "off")
"""


def found(tmp_path, before="", **variables):
    """Returns the folder of the cache in a new process, or ``off``."""
    known = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
    known |= {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", **variables}
    words = [sys.executable, "-P", "-c", TRAIN.format(before=before)]
    done = subprocess.run(words, env=known, capture_output=True, text=True, check=True)
    assert "rror" not in done.stderr
    return done.stdout.strip()


def test_programs_stay_in_the_cache_folder_of_the_user(tmp_path):
    # A program that compiles before must not fix JAX's decision.
    folder = tmp_path / ".cache" / "jaxanon" / "compiled"
    assert found(tmp_path, "jax.jit(jnp.cos)(1.0)") == str(folder)
    assert list(folder.iterdir())


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"JAX_COMPILATION_CACHE_DIR": "{0}/own"}, "{0}/own"),
        ({"JAX_COMPILATION_CACHE_DIR": ""}, "off"),
        ({"XDG_CACHE_HOME": "{0}/xdg"}, "{0}/xdg/jaxanon/compiled"),
        ({"HOME": "/proc"}, "off"),  # No process can write there.
    ],
)
def test_variables_of_the_user_count(tmp_path, variables, expected):
    variables = {name: value.format(tmp_path) for name, value in variables.items()}
    assert found(tmp_path, **variables) == expected.format(tmp_path)


def test_a_folder_of_jax_s_configuration_counts(tmp_path):
    own = str(tmp_path / "mine")
    before = f"jax.config.update('jax_compilation_cache_dir', {own!r})"
    assert found(tmp_path, before) == own
