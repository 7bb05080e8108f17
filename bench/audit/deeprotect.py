"""DEEProtect's release as a whole, window to window, with bugs planted and without."""

import functools
from unittest import mock

import jax
import jax.numpy as jnp

from audit.releases import SIZES, Release
from harness.data import made_spec
from jaxanon import methods
from jaxanon.methods.deeprotect import release as releasing
from jaxanon.methods.deeprotect.release import Named
from jaxanon.models.deeprotect import Layer

TIME, FEATURES, NEAR = 8, 3, 0.05
CLASSES = {"activity": ("a", "b"), "gender": ("f", "m", "x"), "subject": ("1",)}
SPEC = made_spec("line", TIME, mean=(0.5,), rate_hz=1.0, classes=CLASSES)
SETTINGS = {"low": (0.0,), "high": (1.0,), "hidden_sizes": (FEATURES,)}


def cases():
    """What ``anonymize`` makes of two windows, of any or of those that are named."""
    everything = {"mode": "everything", "radius": NEAR}
    few = "noise × 0.5", "one left bare"
    for name, mechanism, bugs in (
        ("DEEProtect", "privunit", few),
        ("DEEProtect, Laplace noise", "laplace", (*few, "clip × 2")),
        ("DEEProtect, Laplace noise on the grid", "grid", (*few, "clip × 2")),
    ):
        send = functools.partial(_everything, everything | {"mechanism": mechanism})
        yield Release(name, 1.0, 0.0, send, bugs, static=SIZES)
    near = {"mode": "named", "mechanism": "span", "radius": NEAR}
    send = functools.partial(_named, near)
    every = (*SIZES, "bare")
    yield Release("DEEProtect, within the span", 1.0, 0.0, send, few, static=every)
    send = functools.partial(_named, near | {"radius": None})
    bugs = (*few, "clip × 2")
    name = "DEEProtect, in a ball within the span"
    yield Release(name, 1.0, 0.0, send, bugs, static=every)


def _sent(key, settings, bug, window, directions, apart):
    """Less a half; features are the first numbers of a window, so each can be seen."""
    method = methods.deeprotect(SPEC, epsilon=1.0 / bug.noise, **SETTINGS | settings)
    state = jax.eval_shape(method.init, key)
    kernel = jnp.eye(FEATURES, TIME)
    middle = jnp.full(TIME, 0.5)
    layer = Layer(kernel, -kernel @ middle, middle)
    params = {"layer 1": layer, "named": Named(directions, apart)}
    state = state._replace(params=params)
    return method.anonymize(key, state, window[None, :, None])[0, :, 0] - 0.5


def _everything(settings, key, world, bug):
    """Features further from the middle than the radius, on either side."""
    side = 2.0 * world - 1
    window = 0.5 + 0.5 * side * (jnp.arange(TIME) < FEATURES)
    hidden, bring_in = releasing._clip_and_add_noise, releasing.bring_in

    def bare(key, away, bounds, config):
        sent = hidden(key, away, bounds, config)
        first = bring_in(away, config.radius)[:, 0]
        return sent.at[:, 0].set(jnp.where(bug.bare, first, sent[:, 0]))

    reaches = lambda away, radius: bring_in(away, bug.reach * radius)
    with (
        mock.patch.object(releasing, "bring_in", reaches),
        mock.patch.object(releasing, "_clip_and_add_noise", bare),
    ):
        directions = jnp.zeros((2, TIME))
        apart = releasing.anything(TIME)
        sent = _sent(key, settings, bug, window, directions, apart)[:FEATURES]
    end = NEAR * bug.reach / FEATURES**0.5
    told = jnp.sum(jnp.clip(sent, -end, end)) / end
    if settings["mechanism"] == "privunit":
        told = jnp.sum(sent)
    at = lambda x: 1000.0 * jnp.any(jnp.abs(sent - x) < 1e-6)
    return jnp.round(told, 3) + at(end) - at(-end)


def _named(settings, key, world, bug):
    """From corner to corner along both directions that are named."""
    directions = jnp.eye(2, TIME)
    apart = releasing.NeighborDistance(2**0.5 / bug.reach, 2 / TIME)
    if bug.bare:
        directions = directions[:1]
    window = 0.5 + (world - 0.5) * (jnp.arange(TIME) < 2)
    sent = _sent(key, settings, bug, window, directions, apart)[:2]
    if settings["radius"] is not None:
        return jnp.round(jnp.sum(sent), 4)
    far = jnp.linalg.norm(sent + 0.5) - jnp.linalg.norm(sent - 0.5)
    return jnp.round(far, 3)
