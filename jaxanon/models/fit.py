"""Trains a classifier: every epoch of it inside one compiled program."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.models.classifiers import Classifier

CHUNK = 1024  # Windows per call of the network when it predicts.

WHOLE = 128  # Windows are padded to a multiple of this; no row number points there.

WIDTH = 16  # The last layer has a multiple of this, so that 2 and 7 classes share code.


class Hyper(NamedTuple):
    """What may change without compiling anew; each ``float[]``."""

    learning_rate: jax.Array | float = 1e-3  # at the start
    dropout: jax.Array | float = 0.1  # The published 0.5 makes a much weaker attacker.


class FittedClassifier(NamedTuple):
    """A trained classifier; ``fit_many`` adds a leading axis to all but ``net``."""

    net: Any  # Classifier, or what was given in its place
    params: dict  # as ``net.init`` makes it, moving averages and all
    num_classes: jax.Array | int  # Logits from here on are impossible.
    loss: jax.Array  # float[epochs], weighted cross-entropy in nats
    score: jax.Array  # float[epochs], balanced accuracy on the validation rows
    best_epoch: jax.Array  # int[]; its parameters are those kept


def fit_classifier(key, windows, labels, num_classes, **options) -> FittedClassifier:
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
        as many as make about ``steps``, 1,000 by default; 100 at most, at least 12
        for each 1,000), ``batch`` (None:
        a power of two near a sixteenth of the rows, 32 to 256), ``hyper``
        (``Hyper``), ``hidden`` (layer widths of ``Classifier``), ``net`` (a module to
        train in its place, called alike; its ``num_classes`` is set here).

    Returns:
      ``FittedClassifier``; give it to ``predict`` or ``predict_logits``.

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
    return FittedClassifier(fitted.net, params, int(num_classes), *told)


def fit_many(
    keys,
    windows,
    labels,
    num_classes,
    *,
    mask=None,
    valid=None,
    epochs: int | None = None,
    steps: int = 1000,
    batch: int | None = None,
    hyper: Hyper | None = None,
    hidden: tuple[int, ...] | None = None,
    net: Any = None,
) -> FittedClassifier:
    """Trains one classifier per set of labels, all in one program.

    As ``fit_classifier``, with a leading axis ``sets`` on ``keys``, ``labels``,
    ``num_classes``, ``mask``, ``valid`` and on the result. Windows are those of every
    set, or have that axis too; sets of fewer windows are filled up and masked. On a CPU
    one set follows the other, elsewhere they run side by side; that changes rounding
    alone.
    """
    windows = np.asarray(windows, np.float32)
    own = windows.ndim == 4
    if own and len(windows) != len(np.asarray(labels)):
        raise ValueError(
            f"windows must be those of all {len(labels)} sets, or float[{len(labels)}, "
            f"N, time, channels], got shape {windows.shape}."
        )
    shared = windows[0] if own else windows
    rows = arrange_rows(shared, labels, num_classes, mask, valid, batch)
    if epochs is not None and epochs < 1:
        raise ValueError(f"epochs must be > 0, got {epochs!r}.")
    if epochs is None:
        few = -(-12 * steps // 1000)
        epochs = int(np.clip(round(steps / rows.train.shape[1]), few, 100))
    width = WIDTH * -(-max(num_classes) // WIDTH)
    net = (net or Classifier(width)).clone(num_classes=width)
    if hidden is not None:
        hidden = tuple(hidden)
        net = net.clone(hidden=hidden, drops=(True,) * len(hidden))
    hyper = jax.tree.map(jnp.float32, hyper or Hyper())
    num_classes = jnp.asarray(num_classes, jnp.int32)
    # A few windows more or less share one program.
    spare = [(0, 0)] * own + [(0, -len(shared) % WHOLE), (0, 0), (0, 0)]
    windows = jnp.asarray(np.pad(windows, spare))
    side_by_side = jax.default_backend() != "cpu"
    rows = jax.tree.map(jnp.asarray, rows)
    fixed = (net, epochs, side_by_side)
    return FittedClassifier(
        net, *_fit_sets(*fixed, keys, windows, rows, num_classes, hyper)
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _fit_sets(net, epochs, side_by_side, keys, windows, rows, classes, hyper):
    own = windows if windows.ndim == 4 else ()

    def one(key, rows, classes, own):
        seen = own if windows.ndim == 4 else windows
        return _fit(net, epochs, seen, hyper, key, rows, classes)

    if side_by_side:
        return jax.vmap(one)(keys, rows, classes, own)
    return jax.lax.map(lambda inputs: one(*inputs), (keys, rows, classes, own))


class Rows(NamedTuple):
    """Row numbers with labels and weights, each ``[sets, steps, batch]``.

    The last batches are filled up with rows of weight 0. Training weights are majority
    count over count of the class; validation weights sum to 1, the same for each class.
    """

    train: np.ndarray  # int32
    train_labels: np.ndarray  # int32
    train_weights: np.ndarray  # float32
    valid: np.ndarray  # int32
    valid_labels: np.ndarray  # int32
    valid_weights: np.ndarray  # float32


def _fit(net, epochs, windows, hyper, key, rows: Rows, num_classes):
    """One classifier; returns the fields of ``FittedClassifier`` after ``net``."""
    optimizer = optax.scale_by_adam()
    init_key, order_key, drop_key = jax.random.split(key, 3)
    averages = net.init(init_key, windows[:1])
    params = {"params": averages.pop("params")}  # What is left no gradient reaches.
    shape = rows.train.shape
    train, train_labels, train_weights = (leaf.reshape(-1) for leaf in rows[:3])

    def loss_fn(params, averages, picks, key):
        weights = train_weights[picks]
        seen = windows[train[picks]], key, hyper.dropout, weights > 0
        logits, averages = net.apply(
            {**params, **averages}, *seen, mutable=list(averages)
        )
        losses = _cross_entropy(logits, train_labels[picks], num_classes)
        loss = jnp.sum(weights * losses) / jnp.maximum(jnp.sum(weights), 1e-6)
        return loss, averages

    def step(carry, inputs):
        params, averages, opt_state = carry
        (loss, averages), grads = jax.value_and_grad(loss_fn, has_aux=True)(
            params, averages, *inputs
        )
        done = opt_state.count / (epochs * shape[0])
        updates, opt_state = optimizer.update(grads, opt_state)
        # On MotionSense the fall to zero is worth a point or two of test accuracy.
        rate = hyper.learning_rate * (1 - done)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        return (params, averages, opt_state), loss

    def score(variables):
        def chunk(picks):
            return _impossible(net.apply(variables, windows[picks]), num_classes)

        right = jax.lax.map(chunk, rows.valid).argmax(-1) == rows.valid_labels
        return jnp.sum(rows.valid_weights * right)

    def epoch(carry, index):
        learner, best, best_score, best_epoch = carry
        order = jax.random.permutation(jax.random.fold_in(order_key, index), train.size)
        keys = jax.random.split(jax.random.fold_in(drop_key, index), shape[0])
        learner, losses = jax.lax.scan(step, learner, (order.reshape(shape), keys))
        # Without validation rows every epoch scores 0, and >= keeps the last one.
        variables = {**learner[0], **learner[1]}
        now = score(variables)
        better = now >= best_score
        keep = lambda new, old: jnp.where(better, new, old)
        best = jax.tree.map(keep, variables, best)
        carry = learner, best, keep(now, best_score), keep(index, best_epoch)
        return carry, (losses.mean(), now)

    learner = params, averages, optimizer.init(params)
    start = learner, {**params, **averages}, jnp.float32(-1), jnp.int32(0)
    carry, (losses, scores) = jax.lax.scan(epoch, start, jnp.arange(epochs))
    return carry[1], num_classes, losses, scores, carry[3]


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


def predict_logits(fitted: FittedClassifier, windows) -> np.ndarray:
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


def predict(fitted: FittedClassifier, windows) -> np.ndarray:
    """The most likely class of each window, ``int32[N]``."""
    return predict_logits(fitted, windows).argmax(-1).astype(np.int32)


def arrange_rows(windows, labels, num_classes, mask, valid, batch) -> Rows:
    """Checks ``fit_many``'s data and lists the rows of each set of labels."""
    labels = np.asarray(labels)
    shape = np.shape(windows)
    if len(shape) != 3:
        raise ValueError(
            f"windows must be float[N, time, channels], got shape {shape}; a single "
            "window is windows[None]."
        )
    if labels.ndim != 2 or labels.shape[1] != shape[0]:
        raise ValueError(
            f"labels must hold one integer per window, {shape[0]} of them, got shape "
            f"{labels.shape[1:]}."
        )
    if batch is not None and batch < 1:
        raise ValueError(f"batch must be > 0, got {batch!r}.")
    mask = np.ones(labels.shape, bool) if mask is None else np.asarray(mask, bool)
    valid = np.zeros(labels.shape, bool) if valid is None else np.asarray(valid, bool)
    for name, rows in (("mask", mask), ("valid", valid)):
        if rows.shape != labels.shape:
            raise ValueError(
                f"{name} must hold one bool per window, {shape[0]} of them, got "
                f"shape {rows.shape[1:]}."
            )
    for row, count, kept in zip(labels, num_classes, mask, strict=True):
        _check_labels(row[kept], count)
    train_rows = [np.flatnonzero(row) for row in mask & ~valid]
    valid_rows = [np.flatnonzero(row) for row in mask & valid]
    if not all(len(rows) for rows in train_rows):
        raise ValueError(
            f"no window is left to train on among {shape[0]}: mask and valid leave "
            "out every one."
        )
    # Shapes follow from the rows that count, not from how many of them validate, so
    # that two attributes of the same windows share a compiled program.
    kept = int(mask.sum(1).max())
    if batch is None:
        batch = int(np.clip(2 ** round(np.log2(kept / 16)), 32, 256))
    batch = min(batch, kept)
    most = max(map(len, valid_rows))
    spared = max(most, kept // 8) if most else 0
    train = _batched(train_rows, labels, -(-kept // batch), batch)
    scored = _batched(valid_rows, labels, -(-spared // batch), batch)
    scored[2][:] /= np.maximum(scored[2].sum((1, 2), keepdims=True), 1e-6)
    return Rows(*train, *scored)


def _check_labels(labels, num_classes):
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes!r}.")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}.")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(
            f"labels must lie in [0, {num_classes}), got {labels.min()} to "
            f"{labels.max()}; raise num_classes or relabel."
        )


def _batched(rows, labels, steps, batch):
    """Row lists to rows, labels and class weights, each ``[sets, steps, batch]``."""
    shape = len(rows), steps, batch
    index = np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    for chosen, own, i, w in zip(rows, labels, index, weights, strict=True):
        counts = np.bincount(own[chosen])
        i.reshape(-1)[: len(chosen)] = chosen
        w.reshape(-1)[: len(chosen)] = counts.max(initial=0) / counts[own[chosen]]
    flat = np.take_along_axis(labels, index.reshape(len(rows), -1), 1)
    return index, flat.reshape(shape).astype(np.int32), weights
