"""Training of classifiers, with all epochs in one compiled program."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxanon.models.classifiers import Classifier

CHUNK = 1024  # Windows per prediction call.

WHOLE = 128  # Windows are padded to a multiple of this; no index refers to the padding.

WIDTH = 16  # Logits are padded to a multiple, so that 2 and 7 classes share a program.


class Hyper(NamedTuple):
    """Hyper-parameters that change without recompiling; each ``float[]``."""

    learning_rate: jax.Array | float = 1e-3  # initial value
    dropout: jax.Array | float = 0.1  # The published 0.5 gives a much weaker attacker.


class FittedClassifier(NamedTuple):
    """A trained classifier; ``fit_many`` adds a leading axis to all but ``net``."""

    net: Any  # Flax module
    params: dict  # all its variables, including moving averages
    num_classes: jax.Array | int  # Logits beyond are padding.
    loss: jax.Array  # float[epochs], weighted cross-entropy in nats
    score: jax.Array  # float[epochs], balanced accuracy on the validation rows
    best_epoch: jax.Array  # int[], epoch of ``params``


def fit_classifier(key, windows, labels, num_classes, **options) -> FittedClassifier:
    """Trains a ``Classifier`` on one attribute.

    Minimizes class-balanced cross-entropy by Adam with a learning rate that falls
    linearly to zero. Rows are shuffled every epoch. With ``valid``, the result has the
    parameters of the epoch with the best validation score (the last of equals), else
    those of the last epoch.

    Args:
      key: typed PRNG key; the same key and data give the same parameters.
      windows: ``float[N, time, channels]``, standardised per channel.
      labels: ``int[N]`` in ``[0, num_classes)``.
      num_classes: number of classes, at least 2.
      **options: further options:

        - ``mask``: ``bool[N]``, rows to use;
        - ``valid``: ``bool[N]``, validation rows, which only select the epoch;
        - ``epochs``: number of epochs; None makes about ``steps`` steps, with at most
          100 epochs and at least 12 per 1,000 steps;
        - ``steps``: number of steps if ``epochs`` is None, 1,000 by default;
        - ``batch``: batch size; None is a power of two near N / 16, from 32 to 256;
        - ``hyper``: a ``Hyper``;
        - ``hidden``: layer widths of ``Classifier``;
        - ``net``: another module with the same call; its ``num_classes`` is replaced.

    Returns:
      ``FittedClassifier``, for ``predict`` and ``predict_logits``.

    Raises:
      ValueError: for windows of the wrong rank, labels out of range or not one per
        window, fewer than 2 classes, ``epochs`` or ``batch`` below 1, or if ``mask``
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
    params, _, *rest = jax.tree.map(lambda leaf: leaf[0], tuple(fitted[1:]))
    return FittedClassifier(fitted.net, params, int(num_classes), *rest)


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

    The arguments are those of ``fit_classifier``, with a leading axis ``sets`` on
    ``keys``, ``labels``, ``num_classes``, ``mask``, ``valid`` and on the result.
    Windows are shared by all sets, or have that axis too; pad and mask sets with fewer
    windows. Sets are trained one after another on a CPU, else with ``vmap``, which only
    changes rounding.
    """
    windows = np.asarray(windows, np.float32)
    per_set = windows.ndim == 4
    if per_set and len(windows) != len(np.asarray(labels)):
        raise ValueError(
            "windows must be float[N, time, channels] or float[sets, N, time, "
            f"channels] for {len(labels)} sets of labels, got shape {windows.shape}."
        )
    shared = windows[0] if per_set else windows
    rows = arrange_rows(shared, labels, num_classes, mask, valid, batch)
    if epochs is not None and epochs < 1:
        raise ValueError(f"epochs must be > 0, got {epochs!r}.")
    if epochs is None:
        min_epochs = -(-12 * steps // 1000)
        epochs = int(np.clip(round(steps / rows.train.shape[1]), min_epochs, 100))
    width = WIDTH * -(-max(num_classes) // WIDTH)
    net = (net or Classifier(width)).clone(num_classes=width)
    if hidden is not None:
        hidden = tuple(hidden)
        net = net.clone(hidden=hidden, drops=(True,) * len(hidden))
    hyper = jax.tree.map(jnp.float32, hyper or Hyper())
    num_classes = jnp.asarray(num_classes, jnp.int32)
    # Similar numbers of windows share one program.
    padding = [(0, 0)] * per_set + [(0, -len(shared) % WHOLE), (0, 0), (0, 0)]
    windows = jnp.asarray(np.pad(windows, padding))
    side_by_side = jax.default_backend() != "cpu"
    rows = jax.tree.map(jnp.asarray, rows)
    fixed = (net, epochs, side_by_side)
    return FittedClassifier(
        net, *_fit_sets(*fixed, keys, windows, rows, num_classes, hyper)
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _fit_sets(net, epochs, side_by_side, keys, windows, rows, classes, hyper):
    per_set = windows if windows.ndim == 4 else ()

    def fit_set(key, rows, classes, set_windows):
        x = set_windows if windows.ndim == 4 else windows
        return _fit(net, epochs, x, hyper, key, rows, classes)

    if side_by_side:
        return jax.vmap(fit_set)(keys, rows, classes, per_set)
    return jax.lax.map(lambda inputs: fit_set(*inputs), (keys, rows, classes, per_set))


class Rows(NamedTuple):
    """Row indices with labels and weights, each ``[sets, steps, batch]``.

    The last batches are padded with rows of weight 0. Training weights are the majority
    count over the count of the class. Validation weights sum to 1, equally over
    classes.
    """

    train: np.ndarray  # int32
    train_labels: np.ndarray  # int32
    train_weights: np.ndarray  # float32
    valid: np.ndarray  # int32
    valid_labels: np.ndarray  # int32
    valid_weights: np.ndarray  # float32


def _fit(net, epochs, windows, hyper, key, rows: Rows, num_classes):
    """Trains one classifier; returns the fields of ``FittedClassifier`` after net."""
    optimizer = optax.scale_by_adam()
    init_key, order_key, drop_key = jax.random.split(key, 3)
    averages = net.init(init_key, windows[:1])
    params = {"params": averages.pop("params")}  # Moving averages have no gradients.
    shape = rows.train.shape
    train, train_labels, train_weights = (leaf.reshape(-1) for leaf in rows[:3])

    def loss_fn(params, averages, picks, key):
        weights = train_weights[picks]
        inputs = windows[train[picks]], key, hyper.dropout, weights > 0
        logits, averages = net.apply(
            {**params, **averages}, *inputs, mutable=list(averages)
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
        # The linear decay adds one or two points of test accuracy on MotionSense.
        rate = hyper.learning_rate * (1 - done)
        params = jax.tree.map(lambda p, u: p - rate * u, params, updates)
        return (params, averages, opt_state), loss

    def score(variables):
        def chunk(picks):
            return _mask_padding(net.apply(variables, windows[picks]), num_classes)

        correct = jax.lax.map(chunk, rows.valid).argmax(-1) == rows.valid_labels
        return jnp.sum(rows.valid_weights * correct)

    def epoch(carry, index):
        learner, best, best_score, best_epoch = carry
        order = jax.random.permutation(jax.random.fold_in(order_key, index), train.size)
        keys = jax.random.split(jax.random.fold_in(drop_key, index), shape[0])
        learner, losses = jax.lax.scan(step, learner, (order.reshape(shape), keys))
        # Without validation rows, every epoch scores 0, and >= selects the last one.
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


def _mask_padding(logits, num_classes):
    """Sets the logits of padding classes to -1e9."""
    real = jnp.arange(logits.shape[-1]) < num_classes
    return jnp.where(jnp.broadcast_to(real, logits.shape), logits, -1e9)


def _cross_entropy(logits, labels, num_classes):
    logits = _mask_padding(logits, num_classes)
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels)


@functools.partial(jax.jit, static_argnums=0)
def _apply(net, params, windows):
    return net.apply(params, windows)


def predict_logits(fitted: FittedClassifier, windows) -> np.ndarray:
    """Returns logits ``float32[N, num_classes]`` of windows, in chunks."""
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
    """Returns the most likely class of each window, ``int32[N]``."""
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
            f"labels must be int[{shape[0]}], one per window, got shape "
            f"{labels.shape[1:]}."
        )
    if batch is not None and batch < 1:
        raise ValueError(f"batch must be > 0, got {batch!r}.")
    mask = np.ones(labels.shape, bool) if mask is None else np.asarray(mask, bool)
    valid = np.zeros(labels.shape, bool) if valid is None else np.asarray(valid, bool)
    for name, rows in (("mask", mask), ("valid", valid)):
        if rows.shape != labels.shape:
            raise ValueError(
                f"{name} must be bool[{shape[0]}], one per window, got shape "
                f"{rows.shape[1:]}."
            )
    for row, count, used in zip(labels, num_classes, mask, strict=True):
        _check_labels(row[used], count)
    train_rows = [np.flatnonzero(row) for row in mask & ~valid]
    valid_rows = [np.flatnonzero(row) for row in mask & valid]
    if not all(len(rows) for rows in train_rows):
        raise ValueError(
            f"mask and valid must leave windows to train on, got 0 of {shape[0]}."
        )
    # Shapes depend on the number of used rows, not on the number of validation rows, so
    # that two attributes of the same windows share a compiled program.
    count = int(mask.sum(1).max())
    if batch is None:
        batch = int(np.clip(2 ** round(np.log2(count / 16)), 32, 256))
    batch = min(batch, count)
    max_valid = max(map(len, valid_rows))
    max_valid = max(max_valid, count // 8) if max_valid else 0
    train = _batched(train_rows, labels, -(-count // batch), batch)
    scored = _batched(valid_rows, labels, -(-max_valid // batch), batch)
    scored[2][:] /= np.maximum(scored[2].sum((1, 2), keepdims=True), 1e-6)
    return Rows(*train, *scored)


def _check_labels(labels, num_classes):
    if num_classes < 2:
        raise ValueError(f"num_classes must be at least 2, got {num_classes!r}.")
    if not np.issubdtype(labels.dtype, np.integer):
        raise ValueError(f"labels must be integers, got dtype {labels.dtype}.")
    if len(labels) and not 0 <= labels.min() <= labels.max() < num_classes:
        raise ValueError(
            f"labels must be in [0, {num_classes}), got {labels.min()} to "
            f"{labels.max()}; increase num_classes or relabel."
        )


def _batched(rows, labels, steps, batch):
    """Returns indices, labels and class weights, each ``[sets, steps, batch]``."""
    shape = len(rows), steps, batch
    index = np.zeros(shape, np.int32)
    weights = np.zeros(shape, np.float32)
    for chosen, y, i, w in zip(rows, labels, index, weights, strict=True):
        counts = np.bincount(y[chosen])
        i.reshape(-1)[: len(chosen)] = chosen
        w.reshape(-1)[: len(chosen)] = counts.max(initial=0) / counts[y[chosen]]
    flat = np.take_along_axis(labels, index.reshape(len(rows), -1), 1)
    return index, flat.reshape(shape).astype(np.int32), weights
