"""Finds products with parameters in a traced loss, and evaluates it with taps."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxanon.kernels.factored.kernel import tapped
from jaxanon.kernels.ghost.products import RULES, Alias, Use

CALLS = ("jit", "pjit", "closed_call", "core_call")
REMAT = ("checkpoint", "remat", "remat2")


class Found(NamedTuple):
    """Uses of parameters in a program."""

    uses: list[Use]
    others: set[int]  # leaves with a use that has no rule


def find(jaxpr, aliases: dict, path=(), lengths=()) -> Found:
    """Finds every use of the variables in ``aliases``; adds their copies to it."""
    found = Found([], set())
    for number, eqn in enumerate(jaxpr.eqns):
        mine = {
            at: aliases[var] for at, var in enumerate(eqn.invars) if _in(var, aliases)
        }
        if mine and not _understood(
            eqn, mine, aliases, found, (*path, number), lengths
        ):
            found.others.update(alias.leaf for alias in mine.values())
    return found


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
        return True  # Integers have no gradient.
    if name == "transpose":
        axes = tuple(alias.axes[axis] for axis in eqn.params["permutation"])
        aliases[eqn.outvars[0]] = Alias(alias.leaf, axes)
        return True
    if name == "stop_gradient":
        return True
    scanned = name == "scan" and max(mine) < _shared_and_carried(eqn.params)[0]
    if not scanned and name not in (*CALLS, *REMAT):
        return False
    body = _body(eqn)
    known = {body.invars[at]: alias for at, alias in mine.items()}
    longer = (*lengths, eqn.params["length"]) if scanned else lengths
    uses, others = find(body, known, path, longer)
    found.uses.extend(uses)
    found.others.update(others)
    if scanned:
        found.others.update(returned(body, known))
    else:
        pairs = zip(body.outvars, eqn.outvars, strict=True)
        aliases.update((out, known[var]) for var, out in pairs if _in(var, known))
    return True


def returned(jaxpr, aliases) -> set[int]:
    """Returns the leaves that a program returns unchanged."""
    return {aliases[var].leaf for var in jaxpr.outvars if _in(var, aliases)}


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


def run(jaxpr, consts, args, uses, taps, path=()):
    """Evaluates a program, ``tapped`` at every product that has a tap.

    ``uses`` and ``taps`` are keyed by the paths of the products.
    """
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *args], strict=True))
    read = lambda var: var.val if _is_literal(var) else values[var]
    for number, eqn in enumerate(jaxpr.eqns):
        here = (*path, number)
        inputs = [read(var) for var in eqn.invars]
        if here in uses:
            (y,) = _run_one(jaxpr, eqn, inputs)
            outputs = [tapped(y, inputs[1 - uses[here].at], taps[here])]
        elif any(key[: len(here)] == here for key in taps):
            within = {key: tap for key, tap in taps.items() if key[: len(here)] == here}
            outputs = _run_body(eqn, inputs, uses, within, here)
        else:
            outputs = _run_one(jaxpr, eqn, inputs)
        values.update(zip(eqn.outvars, outputs, strict=True))
    return [read(var) for var in jaxpr.outvars]


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


def _run_body(eqn, inputs, uses, taps, path):
    body, params = eqn.params["jaxpr"], eqn.params
    consts = body.consts if hasattr(body, "consts") else ()
    inner = lambda args, taps: run(_body(eqn), consts, args, uses, taps, path)
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
