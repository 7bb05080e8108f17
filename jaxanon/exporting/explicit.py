"""A function that draws by a key, as one that is handed what it draws."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.extend.core as jex
import jax.numpy as jnp
import numpy as np

# What ``jax.random`` calls its programs, and what they draw from.
LAWS = {
    "_normal": "normal",
    "_uniform": "uniform",
    "_randint": "integers",
    "_gumbel": "gumbel",
}
DISCRETE = "discrete_laplace_"  # And its scale: of ``kernels.discrete_laplace_noise``.
CALLS = ("jit", "closed_call", "remat2", "checkpoint", "custom_jvp_call")
CALLS += ("custom_vjp_call",)
KEY = object()  # Stands where a key, or an array of keys, stood.


class Draw(NamedTuple):
    """What has to be drawn for one call; ``low``, ``high``: of integers alone.

    ``law`` is ``normal`` or ``gumbel`` (``float32``, standard), ``uniform``
    (``float32`` in [0, 1)), ``integers`` (``int32`` in [low, high)) or ``discrete
    laplace`` (``int32``, in proportion to exp(-|k| / scale)).
    """

    law: str
    shape: tuple[int, ...]
    low: Any = None  # int, of integers
    high: Any = None
    scale: Any = None  # int, of a discrete Laplace


def explicit(fn: Callable, *args) -> tuple[Callable, tuple[Draw, ...]]:
    """Takes the key out of ``fn(key, *args)``.

    Every draw becomes an argument of its own, so that whoever calls it says where
    randomness comes from: on a device, the operating system. Splits of keys vanish.

    Args:
      fn: ``(key, *args) -> arrays``; what it draws, it draws by ``jax.random``'s
        ``normal``, ``uniform``, ``randint`` or ``gumbel`` (or what calls them), or by
        ``kernels.discrete_laplace_noise``; not in a loop.
      *args: arrays, or ``jax.ShapeDtypeStruct`` of them.

    Returns:
      ``(rewritten, draws)``: ``rewritten(*args, *drawn)`` is ``fn`` with what was
      drawn, in the order of ``draws``.

    Raises:
      ValueError: if something is drawn that cannot be taken out, by name.

    Example:
      >>> fn = lambda key, x: x + jax.random.uniform(key, x.shape, maxval=2.0)
      >>> rewritten, draws = explicit(fn, jnp.zeros(2))
      >>> draws[0].law, draws[0].shape
      ('uniform', (2,))
      >>> rewritten(jnp.zeros(2), jnp.array([0.25, 0.5]))
      Array([0.5, 1. ], dtype=float32)
    """
    key = jax.eval_shape(jax.random.key, 0)
    closed, shapes = jax.make_jaxpr(fn, return_shape=True)(key, *args)
    tree = jax.tree.structure(shapes)
    draws: list[Draw] = []

    def noted(draw):
        draws.append(draw)
        return jnp.zeros(draw.shape, _dtype(draw))

    leaves = jax.tree.leaves(args)
    told = lambda *leaves: _evaluated(closed.jaxpr, closed.consts, leaves, noted)
    jax.eval_shape(lambda *leaves: told(KEY, *leaves), *leaves)

    def rewritten(*args):
        drawn = iter(args[len(args) - len(draws) :])
        given = jax.tree.leaves(args[: len(args) - len(draws)])
        taken = lambda draw: next(drawn)
        out = _evaluated(closed.jaxpr, closed.consts, [KEY, *given], taken)
        return jax.tree.unflatten(tree, out)

    return rewritten, tuple(draws)


def _dtype(draw):
    return jnp.int32 if draw.law in ("integers", "discrete laplace") else jnp.float32


def _evaluated(jaxpr, consts, args, draw):
    """What a jaxpr computes, with ``draw(Draw)`` for all that it draws."""
    known = dict(zip(jaxpr.constvars, consts, strict=True))
    known |= dict(zip(jaxpr.invars, args, strict=True))
    read = lambda atom: atom.val if isinstance(atom, jex.Literal) else known[atom]
    for eqn in jaxpr.eqns:
        outs = _applied(eqn, [read(atom) for atom in eqn.invars], draw)
        known |= dict(zip(eqn.outvars, outs, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _applied(eqn, given, draw):
    name, params = eqn.primitive.name, eqn.params
    avals = [var.aval for var in eqn.outvars]
    if avals and all(jnp.issubdtype(aval.dtype, jax.dtypes.prng_key) for aval in avals):
        return [KEY] * len(avals)
    keyed = any(value is KEY for value in given)
    if name in CALLS:
        called = params.get("name", "")
        if keyed and called.startswith(DISCRETE):
            scale = int(called.removeprefix(DISCRETE))
            return [draw(Draw("discrete laplace", avals[0].shape, scale=scale))]
        if keyed and called in LAWS:
            return [_drawn(LAWS[called], given, avals[0], draw)]
        inner = next(v for k, v in params.items() if k in ("jaxpr", "call_jaxpr"))
        inner = inner if hasattr(inner, "consts") else jex.ClosedJaxpr(inner, ())
        return _evaluated(inner.jaxpr, inner.consts, given, draw)
    if name == "platform_index":  # What every platform can do.
        return [_default(params["platforms"])]
    if keyed:
        raise ValueError(
            f"what is drawn by {name!r} cannot be handed in: a method that is exported "
            f"draws by {[*LAWS.values(), 'discrete laplace']}, and outside of loops."
        )
    if name == "cond":
        branches = [_function(branch) for branch in params["branches"]]
        if not isinstance(given[0], jax.core.Tracer):
            return branches[int(given[0])](*given[1:])
        return _branched(given[0], branches, given[1:])
    if name == "scan":
        return _scanned(params, given)
    if name == "while":
        return _looped(params, given)
    known = given and not any(isinstance(value, jax.core.Tracer) for value in given)
    size = sum(math.prod(aval.shape) * aval.dtype.itemsize for aval in avals)
    if known and size <= sum(np.asarray(value).nbytes for value in given):
        with jax.ensure_compile_time_eval():  # Weights, as they will be used.
            outs = eqn.primitive.bind(*given, **params)
    else:
        outs = eqn.primitive.bind(*given, **params)
    return outs if eqn.primitive.multiple_results else [outs]


def _drawn(law, given, aval, draw):
    """One draw, scaled as it was asked for."""
    shape = tuple(aval.shape)
    if law == "integers":
        low, high = (int(value) for value in given[1:])
        return draw(Draw(law, shape, low, high)).astype(aval.dtype)
    if law == "uniform":
        low, high = given[1:]
        return low + draw(Draw(law, shape)) * (high - low)
    return draw(Draw(law, shape)).astype(aval.dtype)


def _default(platforms):
    """Number of the branch that every platform can take."""
    return next(n for n, names in enumerate(platforms) if names is None)


def _function(closed):
    return lambda *args: _evaluated(closed.jaxpr, closed.consts, args, None)


def _branched(number, branches, args):
    """The branch of that number, found by halves: graphs know two at a time."""
    if len(branches) == 1:
        return branches[0](*args)
    half = len(branches) // 2
    return jax.lax.cond(
        number >= half,
        lambda *args: _branched(number - half, branches[half:], args),
        lambda *args: _branched(number, branches[:half], args),
        *args,
    )


def _scanned(params, given):
    if "ft_in" in params:  # Since JAX 0.11: what is fixed, carried and gone through.
        fixed, carried, _ = (len(part) for part in params["ft_in"].elts)
    else:
        fixed, carried = params["num_consts"], params["num_carry"]
    start = fixed + carried
    body = _function(params["jaxpr"])

    def step(carry, x):
        outs = body(*given[:fixed], *carry, *x)
        return outs[:carried], outs[carried:]

    carry, stacked = jax.lax.scan(
        step,
        given[fixed:start],
        given[start:],
        length=params["length"],
        reverse=params["reverse"],
    )
    return [*carry, *stacked]


def _looped(params, given):
    first, second = params["cond_nconsts"], params["body_nconsts"]
    again, body = _function(params["cond_jaxpr"]), _function(params["body_jaxpr"])
    fixed, own, carry = (
        given[:first],
        given[first : first + second],
        given[first + second :],
    )
    return jax.lax.while_loop(
        lambda carry: again(*fixed, *carry)[0],
        lambda carry: body(*own, *carry),
        carry,
    )
