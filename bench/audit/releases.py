"""Single releases of worst-case neighbours, with and without planted bugs."""

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import kernels, metrics
from jaxanon.kernels.mechanisms import choice
from jaxanon.privacy import SampledGaussian, epsilon_spent

DELTA = 1e-3  # For Gaussian noise.
NUMBERS, CLASSES = 3, 4


class Bug(NamedTuple):
    """A deviation of an implementation from its claim."""

    noise: float = 1.0  # noise scale relative to the claim
    reach: float = 1.0  # range of values relative to the bound of the noise
    bare: bool = False  # whether the first of several parts is unprotected


HONEST = "as it is"
SIZES = "noise", "reach"  # Fields of a bug with a size.
BUGS = {
    HONEST: Bug(),
    "noise × 0.5": Bug(noise=0.5),
    "clip × 2": Bug(reach=2.0),
    "one left bare": Bug(bare=True),
}
PLANTED = tuple(BUGS)[1:]


class Release(NamedTuple):
    """A mechanism that is called once, and its claim."""

    name: str
    claimed: float
    delta: float
    send: Callable  # (key, world, bug) -> float[], evidence for the second world
    bugs: tuple[str, ...] = PLANTED
    static: tuple[str, ...] = ()  # fields of a bug that must be static when traced


def counted(release: Release, runs: int, confidence: float) -> dict[str, float]:
    """Returns the ε measured in ``runs`` calls per world, without and with bugs."""

    @functools.partial(jax.jit, static_argnames=release.static)
    def seen(key, noise, reach, bare):
        once = lambda key, world: release.send(key, world, Bug(noise, reach, bare))
        worlds = jnp.repeat(jnp.arange(2.0), runs)
        keys = jax.random.split(key, 2 * runs)
        return jax.vmap(once)(keys, worlds).reshape(2, runs)

    found = {}
    for name in (HONEST, *release.bugs):
        evidence = np.asarray(seen(jax.random.key(2), **BUGS[name]._asdict()))
        halves = np.split(evidence, 2, axis=1)
        found[name] = metrics.epsilon_lower_bound(
            *halves, release.delta, confidence=confidence
        )
    return found


def cases():
    """Yields every mechanism of the kernels that derives its noise from a bound."""
    yield Release("Laplace noise, 3 numbers", 1.0, 0.0, _laplace)
    yield Release("Laplace noise on the grid", 1.0, 0.0, _grid, static=SIZES)
    yield Release("noise in a ball", 1.0, 0.0, _in("l2"))
    yield Release("noise in a cube", 1.0, 0.0, _in("linf"))
    few = "noise × 0.5", "one left bare"
    yield Release("PrivUnit", 1.0, 0.0, _priv_unit, few, static=SIZES)
    yield Release("randomised response, 2 labels", 1.0, 0.0, _response, few)
    yield Release("exponential mechanism", 1.0, 0.0, _exponential)
    for noise in choice.NOISES:
        best = functools.partial(_noisy_max, noise=noise)
        yield Release(f"noisy maximum, {noise}", 1.0, 0.0, best)
    once = epsilon_spent([SampledGaussian(noise_multiplier=1.0)], DELTA)
    yield Release("Gaussian noise, 3 numbers", once, DELTA, _gaussian)
    yield Release("clipped sum", once, DELTA, _sum)
    yield Release("clipped sum, ghost norms", once, DELTA, _ghost)
    yield Release("clipped client, which of two", once, DELTA, _client)
    yield Release("4 clients' noise drawn once", once, DELTA, _drawn_once)


def _vector(world, reach):
    """Returns numbers at one end of their range, and the bounds for reach 1."""
    far = jnp.full(NUMBERS, 9.0) * (2 * world - 1)
    value = kernels.clip_to_range(far, -0.5 * reach, 0.5 * reach)
    fields = ("l1_sensitivity", "l2_sensitivity", "linf_sensitivity")
    true = {name: getattr(value, name) / reach for name in fields}
    return dataclasses.replace(value, **true)


def _told(sent, value, bug, norm, power=1):
    """Returns how much closer a release is to the second end; exact ends are proof."""
    sent = jnp.where(bug.bare & (jnp.arange(NUMBERS) == 0), value, sent)
    end = 0.5 * bug.reach
    far, near = jnp.linalg.norm(sent + end, norm), jnp.linalg.norm(sent - end, norm)
    sure = 100.0 * jnp.any(sent == end) - 100.0 * jnp.any(sent == -end)
    return (
        jnp.round(far**power - near**power, 3) + sure
    )  # Rounding keeps equal values equal.


def _laplace(key, world, bug):
    value = _vector(world, bug.reach)
    sent = kernels.laplace_mechanism(key, value, 1.0 / bug.noise)
    return _told(sent, value.value, bug, 1)


def _grid(key, world, bug):
    value = _vector(world, bug.reach)
    most = 0.5 * bug.reach
    sent = kernels.grid_laplace_mechanism(
        key, value, 1.0 / bug.noise, max_magnitude=most
    )
    return _told(sent, value.value, bug, 1)


def _in(norm):
    def send(key, world, bug):
        value = _vector(world, bug.reach)
        sent = kernels.norm_mechanism(key, value, 1.0 / bug.noise, norm=norm)
        return _told(sent, value.value, bug, {"l2": 2, "linf": jnp.inf}[norm])

    return send


def _gaussian(key, world, bug):
    value = _vector(world, bug.reach)
    sent = kernels.gaussian_mechanism(key, value, bug.noise)
    return _told(sent, value.value, bug, 2, power=2)


def _priv_unit(key, world, bug):
    """Releases a vector; the mechanism shortens long ones, so no clip can be wrong."""
    x = jnp.full(NUMBERS, 0.5) * (2 * world - 1)
    sent = kernels.priv_unit(key, x, 0.5 * NUMBERS**0.5, 1.0 / bug.noise)
    sent = jnp.where(bug.bare & (jnp.arange(NUMBERS) == 0), x, sent)
    return jnp.sum(sent) + 100.0 * (jnp.any(sent == 0.5) - 1.0 * jnp.any(sent == -0.5))


def _response(key, world, bug):
    labels = jnp.full(2, world).astype(jnp.int32)
    sent = kernels.randomized_response(key, labels, CLASSES, 0.5 / bug.noise)
    sent = jnp.where(bug.bare & (jnp.arange(2) == 0), labels, sent)
    sure = 100.0 * (2 * sent[0] - 1) * bug.bare
    return jnp.sum(1.0 * (sent == 1) - 1.0 * (sent == 0)) + sure


def _scores(world, bug):
    """Returns scores of which one increases while all others decrease."""
    moved = jnp.where(jnp.arange(CLASSES) == 0, world, 1 - world)
    return kernels.bounded_value(1.0 * bug.reach * moved, linf=1.0)


def _bare(bug, draw):
    """Returns the draw, without noise on the first score if the bug says so."""
    return lambda key, shape, *args, **named: jnp.where(
        bug.bare & (jnp.arange(CLASSES) == 0), 0, draw(key, shape, *args, **named)
    )


def _exponential(key, world, bug):
    with mock.patch.object(choice, "gumbel", _bare(bug, choice.gumbel)):
        scores = _scores(world, bug)
        best = kernels.exponential_mechanism(key, scores, 1.0 / bug.noise)
    return 1.0 * (best == 0)


def _noisy_max(key, world, bug, noise):
    with mock.patch.object(jax.random, noise, _bare(bug, getattr(jax.random, noise))):
        scores = _scores(world, bug)
        best = kernels.report_noisy_max(key, scores, 1.0 / bug.noise, noise=noise)
    return 1.0 * (best == 0)


ROWS = {"a": jnp.array([[0.0, 0.0], [9.0, 9.0]]), "b": jnp.array([[0.0], [9.0]])}
NORMS = {"a": 1.0, "b": 0.5}


def _bounds(reach):
    return {name: bound * reach for name, bound in NORMS.items()}


def _along(sent, clipped, bug, other=0.0):
    """Returns the distance along the row's direction; an unprotected leaf is proof."""
    sent = sent | {"b": jnp.where(bug.bare, clipped["b"], sent["b"])}
    told = jnp.sum(sent["a"]) / 2**0.5 + 0.5 * jnp.sum(sent["b"])
    sure = jnp.sum(sent["b"] == 0.5) - 1.0 * jnp.sum(sent["b"] == other)
    return told + 100.0 * sure


def _sum(key, world, bug):
    weights = jnp.array([1.0, 0.0]).at[1].set(world)
    total = kernels.clipped_sum(ROWS, _bounds(bug.reach), weights=weights)
    total = dataclasses.replace(total, clip_norms=NORMS)
    return _along(kernels.add_noise_to_sum(key, total, bug.noise), total.value, bug)


def _ghost(key, world, bug):
    loss = lambda p, x: (x["a"] @ p["a"][:, None])[:, 0] + x["b"][:, 0] * p["b"][0]
    params = {"a": jnp.zeros(2), "b": jnp.zeros(1)}
    mask = jnp.arange(2) < 1 + world
    bounds = _bounds(bug.reach)
    total, _ = kernels.clipped_gradient_sum(loss, params, ROWS, bounds, mask=mask)
    total = dataclasses.replace(total, clip_norms=NORMS)
    return _along(kernels.add_noise_to_sum(key, total, bug.noise), total.value, bug)


def _client(key, world, bug):
    """Sends one of two updates, which counts as half the noise multiplier."""
    side = 2 * world - 1
    rows = jax.tree.map(lambda leaf: leaf * side, ROWS)
    bounds = _bounds(bug.reach)
    given = rows, bounds, 2.0 * bug.noise / bug.reach
    sent = kernels.clip_and_noise_per_client(key, *given)
    mine = lambda tree: jax.tree.map(lambda leaf: leaf[1], tree)
    clipped = mine(kernels.clip_rows(rows, bounds))
    return _along(mine(sent), clipped, bug, other=-0.5)


def _drawn_once(key, world, bug):
    """A client sends its update or zeros; each of four clients adds half the noise."""
    four = jax.tree.map(lambda leaf: jnp.concatenate([leaf] * 2), ROWS)
    rows = jax.tree.map(lambda leaf: leaf.at[1].multiply(world).at[3].set(0), four)
    total = kernels.clipped_sum(rows, _bounds(bug.reach))
    total = dataclasses.replace(total, clip_norms=NORMS)
    sent = kernels.add_aggregate_client_noise(key, total, 0.5 * bug.noise)
    return _along(sent, total.value, bug)
