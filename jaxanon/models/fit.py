"""Trains a classifier: every epoch of it inside one compiled program."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.models.classifier import Classifier
from jaxanon.models.rows import Rows, arrange

CHUNK = 1024  # Windows per call of the network when it predicts.
WHOLE = 128  # Windows are padded to a multiple of this; no row number points there.
WIDTH = 16  # The last layer has a multiple of this, so that 2 and 7 classes share code.


class Hyper(NamedTuple):
    """What may change without compiling anew; each ``float[]``."""

    learning_rate: jax.Array | float = 1e-3  # at the start
    dropout: jax.Array | float = 0.1  # The published 0.5 makes a much weaker attacker.


class Fitted(NamedTuple):
    """A trained classifier; ``fit_many`` adds a leading axis to all but ``net``."""

    net: Classifier
    params: dict
    num_classes: jax.Array | int  # Logits from here on are impossible.
    loss: jax.Array  # float[epochs], weighted cross-entropy in nats
    score: jax.Array  # float[epochs], balanced accuracy on the validation rows
    best_epoch: jax.Array  # int[]; its parameters are those kept


def fit_classifier(key, windows, labels, num_classes, **options) -> Fitted:
    """Trains a ``Classifier`` on one attribute.

    Adam, its rate falling linearly to zero, on cross-entropy with each class weighted
    by majority count over its own count; rows are shuffled anew every epoch. With
    ``valid`` the parameters of the epoch that scores best there are kept (of equals
    the last); without, those of the last epoch.

    Args:
      key: typed PRNG key; the same key and data give the same parameters.
      windows: ``float[N, time, channels]``, standardised per channel.
      labels: ``int[N]`` in ``[0, num_classes)``.
      num_classes: number of classes, at least 2.
      **options: ``mask`` (``bool[N]``, rows that count; others change nothing),
        ``valid`` (``bool[N]``, rows that only choose the epoch), ``epochs`` (None:
        as many as make about 1,000 steps, 12 to 100), ``batch`` (None:
        a power of two near a sixteenth of the rows, 32 to 256), ``hyper``
        (``Hyper``), ``hidden`` (layer widths of ``Classifier``).

    Returns:
      ``Fitted``; give it to ``predict`` or ``predict_logits``.

    Raises:
      ValueError: for windows of the wrong rank, labels out of range or not one per
        window, fewer than 2 classes, epochs or a batch below 1, and when ``mask``
        and ``valid`` leave no row to train on.

    Example:
      >>> x = np.repeat(np.float32([[-1], [1]]), 64, axis=0)[..., None]
      >>> y = np.repeat([0, 1], 64)
      >>> quick = {"hidden": (32,), "epochs": 40, "hyper": Hyper(1e-2, 0.0)}
      >>> net = fit_classifier(jax.random.key(0), x, y, 2, **quick)
      >>> predict(net, np.float32([[[-2.0]], [[2.0]]]))
      array([0, 1], dtype=int32)
    """
    for name in ("mask", "valid"):
        if options.get(name) is not None:
            options[name] = np.asarray(options[name])[None]
    labels = np.asarray(labels)[None]
    fitted = fit_many(key[None], windows, labels, [num_classes], **options)
    params, _, *told = jax.tree.map(lambda leaf: leaf[0], tuple(fitted[1:]))
    return Fitted(fitted.net, params, int(num_classes), *told)


def fit_many(
    keys,
    windows,
    labels,
    num_classes,
    *,
    mask=None,
    valid=None,
    epochs: int | None = None,
    batch: int | None = None,
    hyper: Hyper | None = None,
    hidden: tuple[int, ...] | None = None,
) -> Fitted:
    """Trains one classifier per set of labels, on the same windows, in one program.

    As ``fit_classifier``, with a leading axis ``sets`` on ``keys``, ``labels``,
    ``num_classes``, ``mask``, ``valid`` and on the result. On a CPU one set follows
    the other, elsewhere they run side by side; that changes rounding alone.
    """
    rows = arrange(windows, labels, num_classes, mask, valid, batch)
    steps = rows.train.shape[1]
    if epochs is not None and epochs < 1:
        raise ValueError(f"epochs must be > 0, got {epochs!r}.")
    if epochs is None:
        epochs = int(np.clip(round(1000 / steps), 12, 100))
    width = WIDTH * -(-max(num_classes) // WIDTH)
    net = Classifier(width)
    if hidden is not None:
        hidden = tuple(hidden)
        net = net.clone(hidden=hidden, drops=(True,) * len(hidden))
    hyper = jax.tree.map(jnp.float32, hyper or Hyper())
    num_classes = jnp.asarray(num_classes, jnp.int32)
    windows = np.asarray(windows, np.float32)
    spare = -len(windows) % WHOLE  # A few windows more or less share one program.
    windows = jnp.asarray(np.pad(windows, ((0, spare), (0, 0), (0, 0))))
    side_by_side = jax.default_backend() != "cpu"
    rows = jax.tree.map(jnp.asarray, rows)
    fixed = (net, epochs, side_by_side)
    return Fitted(net, *_fit_sets(*fixed, keys, windows, rows, num_classes, hyper))


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _fit_sets(net, epochs, side_by_side, keys, windows, rows, classes, hyper):
    def one(inputs):
        return _fit(net, epochs, windows, hyper, *inputs)

    if side_by_side:
        return jax.vmap(lambda *inputs: one(inputs))(keys, rows, classes)
    return jax.lax.map(one, (keys, rows, classes))


def _fit(net, epochs, windows, hyper, key, rows: Rows, num_classes):
    """One classifier; returns the fields of ``Fitted`` after ``net``."""
    optimizer = optax.scale_by_adam()
    init_key, order_key, drop_key = jax.random.split(key, 3)
    params = net.init(init_key, windows[:1])
    shape = rows.train.shape
    train, train_labels, train_weights = (leaf.reshape(-1) for leaf in rows[:3])

    def loss_fn(params, picks, key):
        logits = net.apply(params, windows[train[picks]], key, hyper.dropout)
        losses = _cross_entropy(logits, train_labels[picks], num_classes)
        weights = train_weights[picks]
        return jnp.sum(weights * losses) / jnp.maximum(jnp.sum(weights), 1e-6)

    def step(carry, inputs):
        params, opt_state = carry
        loss, grads = jax.value_and_grad(loss_fn)(params, *inputs)
        done = opt_state.count / (epochs * shape[0])
        updates, opt_state = optimizer.update(grads, opt_state)
        # On MotionSense the fall to zero is worth a point or two of test accuracy.
        rate = hyper.learning_rate * (1 - done)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        return (params, opt_state), loss

    def score(params):
        def chunk(picks):
            return _impossible(net.apply(params, windows[picks]), num_classes)

        right = jax.lax.map(chunk, rows.valid).argmax(-1) == rows.valid_labels
        return jnp.sum(rows.valid_weights * right)

    def epoch(carry, index):
        params, opt_state, best, best_score, best_epoch = carry
        order = jax.random.permutation(jax.random.fold_in(order_key, index), train.size)
        keys = jax.random.split(jax.random.fold_in(drop_key, index), shape[0])
        (params, opt_state), losses = jax.lax.scan(
            step, (params, opt_state), (order.reshape(shape), keys)
        )
        # Without validation rows every epoch scores 0, and >= keeps the last one.
        now = score(params)
        better = now >= best_score
        keep = lambda new, old: jnp.where(better, new, old)
        best = jax.tree.map(keep, params, best)
        carry = params, opt_state, best, keep(now, best_score), keep(index, best_epoch)
        return carry, (losses.mean(), now)

    start = params, optimizer.init(params), params, jnp.float32(-1), jnp.int32(0)
    carry, (losses, scores) = jax.lax.scan(epoch, start, jnp.arange(epochs))
    return carry[2], num_classes, losses, scores, carry[4]


def _impossible(logits, num_classes):
    """Logits with the padding classes out of reach."""
    real = jnp.arange(logits.shape[-1]) < num_classes
    return jnp.where(jnp.broadcast_to(real, logits.shape), logits, -1e9)


def _cross_entropy(logits, labels, num_classes):
    logits = _impossible(logits, num_classes)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


@functools.partial(jax.jit, static_argnums=0)
def _apply(net, params, windows):
    return net.apply(params, windows)


def predict_logits(fitted: Fitted, windows) -> np.ndarray:
    """``float32[N, time, channels] -> float32[N, num_classes]``, any N, in chunks."""
    windows = np.asarray(windows, np.float32)
    parts = [np.zeros((0, int(fitted.num_classes)), np.float32)]
    for start in range(0, len(windows), CHUNK):
        chunk = windows[start : start + CHUNK]
        padded = np.zeros((CHUNK, *chunk.shape[1:]), np.float32)
        padded[: len(chunk)] = chunk
        logits = np.asarray(_apply(fitted.net, fitted.params, padded))
        parts.append(logits[: len(chunk), : int(fitted.num_classes)])
    return np.concatenate(parts)


def predict(fitted: Fitted, windows) -> np.ndarray:
    """The most likely class of each window, ``int32[N]``."""
    return predict_logits(fitted, windows).argmax(-1).astype(np.int32)
