"""First rounds of algorithms in NumPy loops, for drawn tests.

From a client's rows ``(x, y)``, in float64, they give its message and its client state.
"""

import math

import jax
import numpy as np


def descended(w, rows, length, toward=lambda w, g: g, layers=("base", "head"), size=2):
    """Takes two steps of ``size`` rows, in float64."""
    for step in range(2):
        down = toward(w, slope(w, batch(rows, step, size)))
        w = w | {name: less(w[name], length, down[name]) for name in layers}
    return w


def less(w, length, down):
    return jax.tree.map(lambda w, d: w - length * d, w, down)


def batch(rows, step, size=2):
    x, y = rows
    size = min(size, len(y))
    at = (step * size + np.arange(size)) % len(y)
    return x[at], y[at]


def slope(w, rows):
    """Returns the gradient of the mean cross-entropy."""
    x, y = rows
    logits = x @ w["base"]["w"] + w["head"]["b"]
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    p = (p / p.sum(axis=1, keepdims=True) - np.eye(3)[y]) / len(y)
    return {"base": {"w": x.T @ p}, "head": {"b": p.sum(axis=0)}}


def cut(tree, norm):
    found = math.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
    return jax.tree.map(lambda leaf: leaf * min(1, norm / found), tree)


def sum_of(trees):
    return jax.tree.map(lambda *leaves: sum(leaves), *trees)


def held(h, name, w0):
    """Adds the gradient of ``h[name] / 2`` times the squared distance from ``w0``."""
    pull = lambda w, g, w0: g + h[name] * (w - w0)
    return lambda w, g: jax.tree.map(pull, w, g, w0)


def plain(h, w, rows):
    return descended(w, rows, h["learning_rate"])


def represented(h, w, rows):
    own = descended(w, rows, h["learning_rate"], layers=("head",))
    return descended(own, rows, h["learning_rate"], layers=("base",))


def privately(h, w, rows):
    for _ in range(2):
        each = [
            cut(slope(w, (x[None], y[None])), h["clip_norm"])
            for x, y in zip(*rows, strict=True)
        ]
        w = less(w, h["learning_rate"] / 4, sum_of(each))
    return w


def adapted(h, w, rows):
    for step in (0, 2):
        near = less(w, h["adaptation_learning_rate"], slope(w, batch(rows, step)))
        w = less(w, h["learning_rate"], slope(near, batch(rows, step + 1)))
    return w


def enveloped(h, w, rows, own=False):
    for step in range(2):
        near = w
        for _ in range(2):
            down = held(h, "proximal_weight", w)(near, slope(near, batch(rows, step)))
            near = less(near, h["learning_rate"], down)
        apart = jax.tree.map(np.subtract, w, near)
        w = less(w, h["server_learning_rate"] * h["proximal_weight"], apart)
    return near if own else w


def met(h, w, rows):
    near = less(w, h["adaptation_learning_rate"], slope(w, rows))
    return less(w, 1.0, slope(near, rows))


decayed = lambda h, w, rows: descended(
    w, rows, h["learning_rate"], lambda w, g: less(g, -2 * h["alpha"], w)
)
near_sent = lambda h, w, rows: descended(
    w, rows, h["learning_rate"], held(h, "proximal_mu", w)
)
own_held = lambda h, w, rows: descended(
    w, rows, h["learning_rate"], held(h, "proximal_weight", w)
)
moved = lambda h, w, rows: less(
    w, 1, cut(jax.tree.map(np.subtract, w, plain(h, w, rows)), h["clip_norm"])
)
# Result of a client's round, whether rows are its weight, and the server's factor.
SENT = {
    "atlas": (plain, False, None),
    "clusterfl": (decayed, True, None),
    "ditto": (plain, True, None),
    "dp_fedavg": (moved, False, "server_learning_rate"),
    "fedavg": (plain, True, None),
    "feddl": (plain, True, None),
    "fedper": (plain, True, None),
    "fedprox": (near_sent, True, None),
    "fedrep": (represented, True, None),
    "fedsgd": (lambda h, w, rows: less(w, 0.1, slope(w, rows)), True, None),
    "fedsgd_ldp": (privately, False, None),
    "meta": (met, False, "server_learning_rate"),
    "pfedme": (enveloped, True, "mix"),
    "per_fedavg": (adapted, True, None),
    "scaffold": (plain, False, "server_learning_rate"),
}
# The client's stored state.
KEPT = {
    "atlas": (plain, lambda own: own.params),
    "clusterfl": (decayed, lambda own: own.model),
    "ditto": (own_held, lambda own: own),
    "fedper": (plain, lambda own: own),
    "fedrep": (represented, lambda own: own),
    "localized": (plain, lambda own: own),
    "pfedme": (lambda *of: enveloped(*of, own=True), lambda own: own),
}
