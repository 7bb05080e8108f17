"""Finds products with parameters in a traced loss, and evaluates it with taps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import tapped, thin_product
from jaxanon.kernels.factored.products import RULES, Alias, Use

CALLS = ("jit", "pjit", "closed_call", "core_call")
REMAT = ("checkpoint", "remat", "remat2")


class Found(NamedTuple):
    """Uses of parameters in a program."""

    uses: list[Use]
    others: set[int]  # leaves with a use that has no rule
    fixed: set[int]  # leaves whose values have such a use, without a gradient


def find(jaxpr, leaves) -> Found:
    """Finds every use of the leaves, which are the first inputs of the program."""
    pairs = enumerate(zip(jaxpr.invars, leaves, strict=False))
    aliases = {
        var: Alias(number, tuple(range(jnp.ndim(leaf))))
        for number, (var, leaf) in pairs
    }
    found = Found([], set(), set())
    _find(jaxpr, aliases, found)
    _record(found, returned(jaxpr, aliases))
    return found


def _find(jaxpr, aliases: dict, found, path=(), lengths=()):
    """Adds the uses of the variables in ``aliases``, and their copies to it."""
    for number, eqn in enumerate(jaxpr.eqns):
        mine = {
            at: aliases[var] for at, var in enumerate(eqn.invars) if _in(var, aliases)
        }
        if mine and not _understood(
            eqn, mine, aliases, found, (*path, number), lengths
        ):
            _record(found, mine.values())


def _record(found, aliases):
    """Records uses of values that have no rule."""
    for alias in aliases:
        (found.fixed if alias.fixed else found.others).add(alias.leaf)


def _understood(eqn, mine, aliases, found, path, lengths) -> bool:
    """Records the use in an equation; returns False if no rule applies."""
    name = eqn.primitive.name
    at, alias = next(iter(mine.items()))
    if name in RULES and len(mine) == 1:
        view = RULES[name].view(eqn, at, alias.axes)
        if view is not None:
            found.uses.append(Use(path, lengths, eqn, at, alias, view))
        return view is not None
    if name == "convert_element_type":
        if jnp.issubdtype(eqn.params["new_dtype"], jnp.floating):
            aliases[eqn.outvars[0]] = alias
        else:  # Integers have no gradient.
            found.fixed.add(alias.leaf)
        return True
    if name == "transpose":
        axes = tuple(alias.axes[axis] for axis in eqn.params["permutation"])
        aliases[eqn.outvars[0]] = alias._replace(axes=axes)
        return True
    if name == "stop_gradient":
        aliases[eqn.outvars[0]] = alias._replace(fixed=True)
        return True
    scanned = name == "scan" and max(mine) < _shared_and_carried(eqn.params)[0]
    if not scanned and name not in (*CALLS, *REMAT):
        return False
    body = _body(eqn)
    known = {body.invars[at]: alias for at, alias in mine.items()}
    longer = (*lengths, eqn.params["length"]) if scanned else lengths
    _find(body, known, found, path, longer)
    if scanned:
        _record(found, returned(body, known))
    else:
        pairs = zip(body.outvars, eqn.outvars, strict=True)
        aliases.update((out, known[var]) for var, out in pairs if _in(var, known))
    return True


def returned(jaxpr, aliases) -> list[Alias]:
    """Returns the aliases of leaves that a program returns unchanged."""
    return [aliases[var] for var in jaxpr.outvars if _in(var, aliases)]


def _in(var, aliases):
    return not _is_literal(var) and var in aliases


def _is_literal(var):
    return hasattr(var, "val")  # The class is in jax.extend, which imports slowly.


def _body(eqn):
    """Returns the jaxpr of a call or a scan."""
    body = eqn.params["jaxpr"]
    return body.jaxpr if hasattr(body, "consts") else body


def _shared_and_carried(params) -> tuple[int, int]:
    """Returns the number of constants and of carried inputs of a scan."""
    if "ft_in" in params:  # Since JAX 0.11; the third part are the scanned inputs.
        shared, carried, _ = (len(part) for part in params["ft_in"].elts)
        return shared, carried
    return params["num_consts"], params["num_carry"]


def run(jaxpr, consts, args, uses, taps, pending=None, path=()):
    """Evaluates a program, ``tapped`` at every product that has a tap.

    ``uses`` and ``taps`` are keyed by the paths of the products. ``pending`` holds
    ``Factors`` of leaves, which are subtracted from the leaf in all products.
    """
    pending = {} if pending is None else pending
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda var: var.val if _is_literal(var) else values[var]
    for number, eqn in enumerate(jaxpr.eqns):
        here = (*path, number)
        inputs = [read(var) for var in eqn.invars]
        within = {key: use for key, use in uses.items() if key[: len(here)] == here}
        if here in uses:
            use = uses[here]
            (y,), x = _run_one(jaxpr, eqn, inputs), inputs[1 - use.at]
            if use.alias.leaf in pending:
                y = y - _change(use, x, pending[use.alias.leaf]).astype(y.dtype)
            outputs = [tapped(y, x, taps[here]) if here in taps else y]
        elif within:
            mine = {key: tap for key, tap in taps.items() if key in within}
            outputs = _run_body(eqn, inputs, within, mine, pending, here)
        else:
            outputs = _run_one(jaxpr, eqn, inputs)
        values.update(zip(eqn.outvars, outputs, strict=True))
    return [read(var) for var in jaxpr.outvars]


def _change(use, x, factors):
    """Computes the product with ``inputsᵀ @ cotangents`` in place of the leaf."""
    axis = use.eqn.params["dimension_numbers"][0][1 - use.at][0]
    ends = [factor.astype(x.dtype) for factor in factors]
    if use.alias.fixed:
        ends = jax.lax.stop_gradient(ends)
    if use.view.rows == (1,):
        ends.reverse()
    y = thin_product(jnp.moveaxis(x, axis, -1), *ends)
    return jnp.moveaxis(y, -1, 0) if use.at == 0 else y


def _run_one(jaxpr, eqn, inputs):
    """Evaluates one equation as a separate program, with JAX's evaluator."""
    given = [
        (var, value)
        for var, value in zip(eqn.invars, inputs, strict=True)
        if not _is_literal(var)
    ]
    alone = jaxpr.replace(
        constvars=[], invars=[var for var, _ in given], outvars=eqn.outvars, eqns=[eqn]
    )
    return jax.core.eval_jaxpr(alone, (), *(value for _, value in given))


def _run_body(eqn, inputs, uses, taps, pending, path):
    body, params = eqn.params["jaxpr"], eqn.params
    consts = body.consts if hasattr(body, "consts") else ()
    inner = lambda args, taps: run(_body(eqn), consts, args, uses, taps, pending, path)
    if eqn.primitive.name in REMAT:
        settings = {name: params[name] for name in ("prevent_cse", "policy")}
        return jax.checkpoint(inner, **settings)(inputs, taps)
    if eqn.primitive.name != "scan":
        return inner(inputs, taps)
    shared, carried = _shared_and_carried(params)

    def step(carry, inputs_and_taps):
        scanned, taps = inputs_and_taps
        outputs = inner([*inputs[:shared], *carry, *scanned], taps)
        return outputs[:carried], outputs[carried:]

    carry, stacked = jax.lax.scan(
        step,
        inputs[shared : shared + carried],
        (inputs[shared + carried :], taps),
        **{name: params[name] for name in ("length", "reverse", "unroll")},
    )
    return [*carry, *stacked]
