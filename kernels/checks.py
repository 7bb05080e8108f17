"""Argument checks of kernels."""

import difflib
import numbers
import operator

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.kernels.portable import SuppliedKey


def is_key(array) -> bool:
    """Returns whether an array holds typed PRNG keys.

    Example:
      >>> is_key(jax.random.key(0)), is_key(jnp.zeros(2, jnp.uint32))
      (True, False)
    """
    dtype = getattr(array, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def typed_key(key) -> None:
    """Raises TypeError unless ``key`` is a typed PRNG key.

    Example:
      >>> typed_key(jax.random.key(0))
    """
    if not is_key(key) and not isinstance(key, SuppliedKey):
        raise TypeError(
            "key must be a typed PRNG key such as jax.random.key(0), "
            f"got {type(key).__name__} with dtype {getattr(key, 'dtype', None)}."
        )


def numeric(**named) -> None:
    """Raises unless every value is a real number, or an array or lists of them.

    Raises:
      TypeError: for another type, such as text, or lists of different lengths.
      ValueError: for a JAX array whose memory was freed.

    Example:
      >>> numeric(x=np.ones(3), scale=0.5)
      >>> numeric(x=["a"])
      Traceback (most recent call last):
      ...
      TypeError: x must hold real numbers, got ['a'] of type list.
    """
    for name, value in named.items():
        if hasattr(value, "__jax_array__") or isinstance(value, jax.ShapeDtypeStruct):
            continue
        for leaf in jax.tree.leaves(value) if isinstance(value, list) else [value]:
            if isinstance(leaf, jax.Array) and not isinstance(leaf, jax.core.Tracer):
                if leaf.is_deleted():
                    raise ValueError(
                        f"{name} must be an array that still exists, got one that was "
                        "deleted or donated to a call; pass a copy to that call."
                    )
        if isinstance(value, jax.Array):
            kind = "c" if jnp.iscomplexobj(value) else "f"
        else:
            try:
                kind = np.asarray(value).dtype.kind
            except jax.errors.JAXTypeError:
                continue  # Traced arrays in a list.
            except (ValueError, TypeError):
                kind = "O"
        if kind not in "biufV":  # V holds bfloat16 and float8.
            raise TypeError(
                f"{name} must hold real numbers, got {_short(value)} of type "
                f"{type(value).__name__}."
            )


def tree_numeric(**named) -> None:
    """Raises as ``numeric`` unless every leaf of every tree holds numbers.

    Example:
      >>> tree_numeric(params={"w": jnp.ones(3), "b": 0.0})
    """
    for name, tree in named.items():
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
            if not is_key(leaf):
                numeric(**{name + jax.tree_util.keystr(path): leaf})


def tree_rows(**named) -> int:
    """Returns the common length of all leaves of all trees of numbers.

    Raises:
      TypeError: if a leaf does not hold real numbers.
      ValueError: if there is no leaf, or a leaf has another length.

    Example:
      >>> tree_rows(rows={"x": jnp.ones((3, 2))}, mask=jnp.ones(3, bool))
      3
    """
    tree_numeric(**named)
    shapes = {
        name: [jnp.shape(leaf) for leaf in jax.tree.leaves(tree)]
        for name, tree in named.items()
    }
    lengths = {shape[:1] for each in shapes.values() for shape in each}
    if len(lengths) != 1 or () in lengths:
        got = ", ".join(f"{name} {each}" for name, each in shapes.items())
        raise ValueError(
            f"every array of {' and '.join(named)} must be [N, ...] with one N, got "
            f"shapes {got}."
        )
    return lengths.pop()[0]


def ranked(*ranks, **named) -> None:
    """Raises unless every array holds numbers and has one of the ranks.

    Example:
      >>> ranked(1, 2, x=np.ones((2, 3)))
    """
    for name, array in named.items():
        numeric(**{name: array})
        if np.ndim(array) not in ranks:
            axes = " or ".join(map(str, ranks))
            raise ValueError(f"{name} must have {axes} axes, got {np.shape(array)}.")


def as_array(name, value) -> jax.Array:
    """Returns a value checked by ``numeric`` as a JAX array.

    Example:
      >>> as_array("x", [1.0, 2.0])
      Array([1., 2.], dtype=float32)
    """
    numeric(**{name: value})
    return jnp.asarray(value)


def as_numpy(name, value, dtype=None) -> np.ndarray:
    """Returns a value checked by ``numeric`` as a NumPy array.

    Example:
      >>> as_numpy("x", [1, 2], np.float64)
      array([1., 2.])
    """
    numeric(**{name: value})
    return np.asarray(value, dtype)


def host_number(**named) -> None:
    """Raises TypeError unless every value is one real number on the host.

    Example:
      >>> host_number(delta=1e-5)
    """
    for name, value in named.items():
        not_traced(name, value)
        is_scalar = isinstance(value, jax.Array) and not value.shape
        if isinstance(value, bool) or (known(value) is None and not is_scalar):
            raise TypeError(f"{name} must be a number, got {_short(value)}.")


def is_callable(**named) -> None:
    """Raises TypeError unless every value is a function.

    Example:
      >>> is_callable(loss_fn=jnp.sum)
    """
    for name, value in named.items():
        if not callable(value):
            raise TypeError(f"{name} must be a function, got {_short(value)}.")


def is_instance(kind, **named) -> None:
    """Raises TypeError unless every value has the type.

    Example:
      >>> is_instance(tuple, shape=(2, 3))
    """
    for name, value in named.items():
        if not isinstance(value, kind):
            raise TypeError(
                f"{name} must be a {_named(kind)}, got {type(value).__name__}."
            )


def strings(**named) -> None:
    """Raises TypeError unless every value is a list or tuple of strings.

    Example:
      >>> strings(channels=("x", "y"))
    """
    for name, value in named.items():
        listed = isinstance(value, list | tuple)
        if not listed or not all(isinstance(word, str) for word in value):
            raise TypeError(f"{name} must be a list of strings, got {_short(value)}.")


def _named(kind):
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return " or ".join(one.__name__ for one in kinds)


def as_shape(name, value) -> tuple[int, ...]:
    """Returns a shape as a tuple of Python ints; an int is one axis.

    Example:
      >>> as_shape("shape", [2, np.int64(3)]), as_shape("shape", 4)
      ((2, 3), (4,))
    """
    axes = value if isinstance(value, tuple | list | np.ndarray) else (value,)
    return tuple(whole(name, axis, least=0) for axis in axes)


def _short(value) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def known(value) -> float | None:
    """Returns a Python or NumPy number as a Python number; None for anything else.

    JAX arrays give None: they may be traced or on a device.

    Example:
      >>> known(np.int64(3)), known(np.array(0.5)), known(jnp.ones(())), known("3")
      (3, 0.5, None, None)
    """
    if isinstance(value, np.ndarray | np.generic):
        real = value.ndim == 0 and not np.iscomplexobj(value)
        value = value.item() if real else None
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real) else None


def positive(**named) -> None:
    """Raises ValueError if a number on the host is not > 0; arrays of numbers pass.

    Example:
      >>> positive(epsilon=0.5)
    """
    for name, value in named.items():
        number = known(value)
        if number is None:
            number_like(name, value)
        elif not number > 0:
            raise ValueError(f"{name} must be > 0, got {value!r}.")


def not_negative(**named) -> None:
    """Raises ValueError if a number on the host is not >= 0; arrays of numbers pass.

    Example:
      >>> not_negative(scale=0.0)
    """
    for name, value in named.items():
        number = known(value)
        if number is None:
            number_like(name, value)
        elif not number >= 0:
            raise ValueError(f"{name} must be >= 0, got {value!r}.")


def number_like(name, value) -> None:
    """Raises TypeError for anything but a number, also in an array.

    Example:
      >>> number_like("weight", jnp.ones(()))
    """
    if isinstance(value, list | tuple):
        raise TypeError(f"{name} must be a number, got {_short(value)}.")
    numeric(**{name: value})
    if not np.size(value):
        raise ValueError(f"{name} must be a number, got an empty array.")


def whole(name, value, least) -> int:
    """Returns a count used for shapes or loops as a Python int.

    Raises:
      TypeError: if it is traced or not an integer.
      ValueError: if it is below ``least``.

    Example:
      >>> whole("block", np.int64(256), least=1)
      256
    """
    not_traced(name, value)
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{name} must be a Python int, got {value!r}.")
    if number < least:
        raise ValueError(f"{name} must be >= {least}, got {value!r}.")
    return number


def not_traced(name, value) -> None:
    """Raises TypeError for a traced value where the host must know it.

    Example:
      >>> not_traced("rate_hz", 50.0)
    """
    if isinstance(value, jax.core.Tracer):
        raise TypeError(
            f"{name} must be known when the program is traced, got {value}; pass a "
            f"Python number: close over it or name {name} in static_argnames of "
            "jax.jit."
        )


def floating(**named) -> None:
    """Raises TypeError unless every array holds floats.

    Example:
      >>> floating(x=jnp.ones(3))
    """
    for name, array in named.items():
        numeric(**{name: array})
        dtype = jnp.result_type(array)
        if not jnp.issubdtype(dtype, jnp.floating):
            raise TypeError(
                f"{name} must hold floats, got {dtype}; convert it with "
                "astype(jnp.float32)."
            )


def did_you_mean(name, known) -> str:
    """Returns a question that suggests the closest word, or "" if none is close.

    Example:
      >>> did_you_mean("fedavgg", ("atlas", "fedavg")), did_you_mean("x", ("fedavg",))
      (" Did you mean 'fedavg'?", '')
    """
    near = difflib.get_close_matches(
        str(name).lower().replace("-", "_"), [str(word) for word in known], n=1
    )
    return f" Did you mean {near[0]!r}?" if near else ""


def one_of(name, value, choices) -> None:
    """Raises ValueError unless ``value`` is one of ``choices``.

    Example:
      >>> one_of("kind", "lowpass", ("lowpass", "highpass"))
    """
    if isinstance(value, np.ndarray | jax.Array) or value not in choices:
        raise ValueError(
            f"{name} must be one of {choices}, got {value!r}."
            f"{did_you_mean(value, choices)}"
        )


def fits(name, array) -> None:
    """Raises ValueError for a host array whose numbers JAX would change silently.

    Without 64-bit mode, JAX wraps large integers and rounds float64 to float32.
    Rounding is refused where it makes numbers infinite, or where numbers above 2^24,
    such as times since 1970, differ by less than their rounding errors. JAX arrays
    pass.

    Example:
      >>> fits("rows", np.array([0.1, 1e6]))
    """
    numeric(**{name: array})
    if isinstance(array, jax.Array):
        return
    array = np.asarray(array)
    if array.dtype.kind not in "iuf" or not array.size:
        return
    kept = jax.dtypes.canonicalize_dtype(array.dtype)
    if kept == array.dtype:
        return
    if array.dtype.kind in "iu":
        limits = np.iinfo(kept)
        wrong = (array < limits.min) | (array > limits.max)
    else:
        with np.errstate(over="ignore"):
            rounded = array.astype(kept)
        wrong = np.isfinite(array) & ~np.isfinite(rounded)
        columns = array.reshape(-1, array.shape[-1] if array.ndim > 2 else 1)
        finite = np.isfinite(columns)
        size = np.max(np.abs(columns), axis=0, where=finite, initial=0)
        low = np.min(columns, axis=0, where=finite, initial=np.inf)
        high = np.max(columns, axis=0, where=finite, initial=-np.inf)
        lost = (high > low) & (high - low < 16 * np.finfo(kept).eps * size)
        wrong |= (
            (lost & (size > 2**24))[None].repeat(len(columns), 0).reshape(array.shape)
        )
    if wrong.any():
        raise ValueError(
            f"{name} must fit in {kept.name}, got {array[wrong][0].item()!r}; subtract "
            "an offset, number the distinct values, or enable jax_enable_x64."
        )
