"""Random draws and branches that an exporter can replace.

Exported methods draw with the functions of this module. With a PRNG key the functions
return the same numbers as ``jax.random``. With a ``SuppliedKey``, which only
``explicit`` creates, each draw is an argument of the exported program.
"""

import dataclasses
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

# Part of JAX's cache key: a program traced inside is never reused outside.
_exporting = jax.make_user_context(default_value=False)


class Draw(NamedTuple):
    """A random array that a call needs; only integers use ``low`` and ``high``.

    ``law`` is ``normal`` or ``gumbel`` (``float32``, standard), ``uniform``
    (``float32`` in [0, 1)), ``integers`` (``int32`` in [low, high)) or ``discrete
    laplace`` (``int32``, in proportion to exp(-|k| / scale)).
    """

    law: str
    shape: tuple[int, ...]
    low: Any = None  # int; only for "integers"
    high: Any = None
    scale: Any = None  # int; only for "discrete laplace"

    @property
    def dtype(self):
        """``int32`` or ``float32``."""
        whole = self.law in ("integers", "discrete laplace")
        return jnp.int32 if whole else jnp.float32


@dataclasses.dataclass(frozen=True)
class SuppliedKey:
    """Placeholder for a PRNG key where ``explicit`` supplies the draws.

    It is not a JAX type, so JAX raises an error wherever a draw cannot be supplied: in
    ``jax.random`` and as an argument of a loop, ``vmap`` or ``jit``.
    """

    supply: Callable  # ``(path, Draw) -> array``
    path: tuple = ()  # Splits and folds so far; equal keys draw equal numbers.
    shape = ()

    def draw(self, law: str, shape, **limits):
        """Returns the array supplied for a draw with this key."""
        return self.supply(self.path, Draw(law, tuple(shape), **limits))


def explicit(fn: Callable, *args) -> tuple[Callable, tuple[Draw, ...]]:
    """Replaces the key of ``fn(key, *args)`` by explicit random arrays.

    Each draw becomes an argument, so the caller chooses the source of randomness, such
    as the operating system of a device.

    Args:
      fn: ``(key, *args) -> arrays``. It must draw with the functions of this module or
        ``kernels.discrete_laplace_noise``, outside of loops.
      *args: arrays or ``jax.ShapeDtypeStruct``.

    Returns:
      ``(rewritten, draws)``: ``rewritten(*args, *drawn)`` computes ``fn`` with
      ``drawn`` in the order of ``draws``.

    Raises:
      ValueError: if a draw of ``fn`` cannot be supplied.

    Example:
      >>> fn = lambda key, x: x + uniform(key, x.shape, high=2.0)
      >>> rewritten, draws = explicit(fn, jnp.zeros(2))
      >>> draws[0].law, draws[0].shape
      ('uniform', (2,))
      >>> rewritten(jnp.zeros(2), jnp.array([0.25, 0.5]))
      Array([0.5, 1. ], dtype=float32)
    """
    places: dict = {}

    def record(path, draw):
        places.setdefault((path, draw), len(places))
        return jnp.zeros(draw.shape, draw.dtype)

    try:
        with _exporting(True):
            jax.eval_shape(lambda *args: fn(SuppliedKey(record), *args), *args)
    except TypeError as error:
        raise ValueError(
            "fn must draw with jaxanon.kernels.portable, outside of loops, to be "
            f"exported, got a TypeError: {error}"
        ) from error

    def rewritten(*args):
        args, drawn = args[: len(args) - len(places)], args[len(args) - len(places) :]
        supply = lambda path, draw: jnp.asarray(drawn[places[path, draw]], draw.dtype)
        with _exporting(True):
            return fn(SuppliedKey(supply), *args)

    return rewritten, tuple(draw for _, draw in places)


def split(key, num: int = 2):
    """Returns ``num`` keys to unpack or index, as ``jax.random.split``.

    Example:
      >>> first, second = split(jax.random.key(0))
    """
    if not isinstance(key, SuppliedKey):
        return jax.random.split(key, num)
    own = lambda index: dataclasses.replace(key, path=(*key.path, num, index))
    return [own(index) for index in range(num)]


def fold_in(key, data: int):
    """Returns ``jax.random.fold_in(key, data)``; ``data`` must not be traced.

    Example:
      >>> fold_in(jax.random.key(0), 3).shape
      ()
    """
    if not isinstance(key, SuppliedKey):
        return jax.random.fold_in(key, data)
    return dataclasses.replace(key, path=(*key.path, "fold", operator.index(data)))


def vmap(fn: Callable, key, *arrays):
    """Maps ``fn(row_key, *rows)`` over the rows of ``arrays`` with ``jax.vmap``.

    Args:
      fn: function of a key and one row of each array.
      key: typed PRNG key, split into one key per row.
      *arrays: ``[N, ...]`` each.

    Example:
      >>> vmap(lambda key, x: x + normal(key, x.shape), jax.random.key(0),
      ...      jnp.zeros((3, 2))).shape
      (3, 2)
    """
    count = len(arrays[0])
    if not isinstance(key, SuppliedKey):
        return jax.vmap(fn)(jax.random.split(key, count), *arrays)
    like = [jax.ShapeDtypeStruct(array.shape[1:], array.dtype) for array in arrays]
    of_row, draws = explicit(fn, *like)
    drawn = [
        own.supply(own.path, draw._replace(shape=(count, *draw.shape)))
        for own, draw in zip(split(key, len(draws)), draws, strict=True)
    ]
    return jax.vmap(of_row)(*arrays, *drawn)


def normal(key, shape=(), dtype=float):
    """Draws as ``jax.random.normal``.

    Example:
      >>> normal(jax.random.key(0), (2, 3)).shape
      (2, 3)
    """
    if isinstance(key, SuppliedKey):
        return key.draw("normal", shape).astype(dtype)
    return jax.random.normal(key, shape, dtype)


def uniform(key, shape=(), low: float = 0.0, high: float = 1.0, dtype=float):
    """Draws in [low, high) as ``jax.random.uniform``.

    Example:
      >>> bool(uniform(jax.random.key(0), low=3.0, high=4.0) >= 3)
      True
    """
    if isinstance(key, SuppliedKey):
        return low + key.draw("uniform", shape).astype(dtype) * (high - low)
    return jax.random.uniform(key, shape, dtype, low, high)


def bernoulli(key, probability, shape=()):
    """Draws as ``jax.random.bernoulli``.

    Example:
      >>> bool(bernoulli(jax.random.key(0), 1.0))
      True
    """
    if isinstance(key, SuppliedKey):
        return key.draw("uniform", shape) < probability
    return jax.random.bernoulli(key, probability, shape)


def randint(key, shape, low: int, high: int):
    """Draws ``int32`` in [low, high) as ``jax.random.randint``.

    Example:
      >>> int(randint(jax.random.key(0), (), 3, 4))
      3
    """
    if isinstance(key, SuppliedKey):
        return key.draw(
            "integers", shape, low=operator.index(low), high=operator.index(high)
        )
    return jax.random.randint(key, shape, low, high, jnp.int32)


def exponential(key, shape=(), dtype=float):
    """Draws as ``jax.random.exponential``.

    Example:
      >>> bool(exponential(jax.random.key(0)) >= 0)
      True
    """
    if isinstance(key, SuppliedKey):
        return -jnp.log1p(-uniform(key, shape, dtype=dtype))
    return jax.random.exponential(key, shape, dtype)


def laplace(key, shape=(), dtype=float):
    """Draws as ``jax.random.laplace``.

    Example:
      >>> laplace(jax.random.key(0), (4,)).shape
      (4,)
    """
    if isinstance(key, SuppliedKey):
        u = uniform(key, shape, -1 + float(jnp.finfo(jnp.float32).epsneg), 1.0)
        return (-jnp.sign(u) * jnp.log1p(-jnp.abs(u))).astype(dtype)
    return jax.random.laplace(key, shape, dtype)


def gumbel(key, shape=(), dtype=float, mode: str = "low"):
    """Draws as ``jax.random.gumbel``; ``mode`` sets the precision of the upper tail.

    Example:
      >>> gumbel(jax.random.key(0), (4,)).shape
      (4,)
    """
    if isinstance(key, SuppliedKey):
        return key.draw("gumbel", shape).astype(dtype)
    return jax.random.gumbel(key, shape, dtype, mode)


def categorical(key, logits, shape=()):
    """Draws ``int32[shape]`` from one distribution, as ``jax.random.categorical``.

    Args:
      key: typed PRNG key.
      logits: ``float[classes]``.
      shape: shape of the result.

    Example:
      >>> categorical(jax.random.key(0), jnp.log(jnp.array([0.0, 1.0])), (3,))
      Array([1, 1, 1], dtype=int32)
    """
    if isinstance(key, SuppliedKey):
        scores = gumbel(key, (*shape, *logits.shape)) + jnp.expand_dims(
            logits, tuple(range(len(shape)))
        )
        return jnp.argmax(scores, axis=-1).astype(jnp.int32)
    return jax.random.categorical(key, logits, shape=shape).astype(jnp.int32)


def by_platform(*args, cpu: Callable, default: Callable):
    """Calls ``jax.lax.platform_dependent``; an exported program uses ``default``.

    Example:
      >>> by_platform(jnp.zeros(()), cpu=jnp.cos, default=jnp.cos)
      Array(1., dtype=float32)
    """
    if _exporting.value:
        return default(*args)
    return jax.lax.platform_dependent(*args, cpu=cpu, default=default)
