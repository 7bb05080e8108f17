"""Keeps compiled programs on disk between processes."""

import os
import pathlib
import sys

VARIABLE = "JAX_COMPILATION_CACHE_DIR"


def keep_compiled_programs() -> None:
    """Switches JAX's persistent compilation cache on, unless the user chose.

    The folder is ``jaxanon/compiled`` in ``$XDG_CACHE_HOME``, or in ``~/.cache``.
    Nothing changes if ``JAX_COMPILATION_CACHE_DIR`` is set, also to an empty string,
    which disables the cache, if ``jax.config.jax_compilation_cache_dir`` is set, or if
    the folder cannot be written.

    Example:
      >>> keep_compiled_programs()
    """
    loaded = sys.modules.get("jax")
    if VARIABLE in os.environ or (loaded and loaded.config.jax_compilation_cache_dir):
        return
    folder = _writable_folder()
    if folder is None:
        return
    if loaded is None:  # The command line waits with JAX until it needs it.
        os.environ[VARIABLE] = folder
        return
    from jax.experimental.compilation_cache import compilation_cache

    loaded.config.update("jax_compilation_cache_dir", folder)
    compilation_cache.reset_cache()  # JAX reads the setting at the first program only.


def _writable_folder() -> str | None:
    """Creates the folder; returns None if it is not writable."""
    try:
        base = pathlib.Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not base.is_absolute():  # Its specification ignores relative folders.
            base = pathlib.Path.home() / ".cache"
        folder = base / "jaxanon" / "compiled"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # No home, or one that is read-only.
        return None
    return str(folder) if os.access(folder, os.W_OK) else None
