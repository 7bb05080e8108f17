"""DySan's online phase: selects the model that sanitizes a wearer's windows."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.attacks import attackers
from jaxanon.core.method import Method
from jaxanon.datasets.spec import standardise
from jaxanon.edge.forest import Forest
from jaxanon.methods.dysan import sanitizers

LENGTH = 5  # Windows per run in the paper.

CHUNK = 512  # Windows per call of all models.

LARGE = 1 << 14  # Arrays of at least this size are stored in half precision.


class Tried(NamedTuple):
    """Outputs of K models for the same N windows."""

    windows: np.ndarray  # float32[K, N, time, channels], sanitized, physical units
    public: np.ndarray  # int32[K, N], class predicted by each model's predictor
    private: np.ndarray  # int32[K, A, N], classes predicted by its discriminators


def labeller(key, spec, windows, labels) -> Callable:
    """Trains a random forest that predicts the public class of raw windows.

    Args:
      key: typed PRNG key.
      spec: ``Spec`` of the windows.
      windows: ``float[N, time, channels]`` calibration windows in physical units, for
        example recorded while the wearer performs one activity after another.
      labels: ``int[N]``, public classes of the windows.

    Returns:
      A function from ``float[M, time, channels]`` to ``int32[M]``.

    Example:
      >>> from jaxanon import datasets
      >>> spec, train, test = datasets.load("smartwatch")
      >>> calibration = train.windows[::50], train.labels[spec.public][::50]
      >>> labeller(jax.random.key(0), spec, *calibration)(test.windows[:3]).shape
      (3,)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    return forest(key, spec, windows, labels)


def forest(key, spec, windows, labels) -> Forest:
    """Returns the ``labeller`` as arrays, which a device can read."""
    labels = np.asarray(labels)
    seed = int(jax.random.bits(key, dtype=np.uint32))
    model = attackers.MODELS["forest"](seed)
    model.fit(attackers.features(standardise(spec, windows)), labels)
    trees = [each.tree_ for each in model.estimators_]
    roots = np.cumsum([0, *(tree.node_count for tree in trees)])[:-1]
    joined = lambda name: np.concatenate([getattr(tree, name) for tree in trees])
    inside = lambda name: np.concatenate(
        [
            np.where(getattr(tree, name) < 0, -1, getattr(tree, name) + root)
            for tree, root in zip(trees, roots, strict=True)
        ]
    )
    values = np.concatenate([tree.value[:, 0] for tree in trees])
    return Forest(
        roots=roots.astype(np.int32),
        left=inside("children_left").astype(np.int32),
        right=inside("children_right").astype(np.int32),
        feature=joined("feature").astype(np.int32),
        threshold=joined("threshold"),
        shares=values / values.sum(axis=1, keepdims=True),
        classes=model.classes_.astype(np.int64),
        mean=np.asarray(spec.mean, np.float32),
        std=np.asarray(spec.std, np.float32),
    )


def trier(method: Method, states: Sequence) -> Callable:
    """Returns a function that runs K trained DySan models on the same windows.

    Args:
      method: the method of all models; ``dysan`` or one of its variants.
      states: trained states from ``train`` or ``sweep``, one per model.

    Returns:
      ``(key, windows, public) -> Tried``, with ``windows`` ``float[N, time, channels]``
      in physical units and ``public`` ``int[N]``, which conditions the discriminators.
      The sanitizers are composed once, in this function. A call compiles for each new
      N. Large weights are stored in half precision to save memory bandwidth; sanitized
      windows differ from the method's own by about 0.001 standard deviations.

    Raises:
      ValueError: if ``states`` is empty.
    """
    if not len(states):
        raise ValueError("states must hold at least one trained model, got none.")
    compose, one = once(method)
    stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])
    params = jax.tree.map(stack, *(dict(state.params) for state in states))
    composed = jax.jit(lambda params: jax.lax.map(compose, params))(params)
    stored = jax.tree.map(_to_half_precision, composed)

    @jax.jit
    def run_models(key, stored, windows, public):
        models = jax.random.split(key, len(states)), stored
        run_model = lambda model: one(
            model[0], jax.tree.map(_to_float32, model[1]), windows, public
        )
        if jax.default_backend() == "cpu":  # Keeps one model's weights in the cache.
            return jax.lax.map(run_model, models)
        return jax.vmap(run_model)(models)

    def try_all(key, windows, public):
        outputs = run_models(key, stored, windows, jnp.asarray(public))
        return Tried(*map(np.asarray, outputs))

    return try_all


def try_models(key, trier, windows, public) -> Tried:
    """Runs all models on windows in pieces; returns no rewritten windows.

    Args:
      key: typed PRNG key.
      trier: function from ``trier``.
      windows: ``float[N, time, channels]``, N > 0.
      public: ``int[N]``.
    """
    parts = []
    for number, start in enumerate(range(0, len(windows), CHUNK)):
        rows = np.arange(start, start + CHUNK) % len(windows)  # One shape, one program.
        tried = trier(jax.random.fold_in(key, number), windows[rows], public[rows])
        count = min(CHUNK, len(windows) - start)
        parts.append((tried.public[:, :count], tried.private[..., :count]))
    columns = zip(*parts, strict=True)
    of_public, of_private = (np.concatenate(part, axis=-1) for part in columns)
    return Tried(np.empty(0), of_public, of_private)


def once(method: Method) -> tuple[Callable, Callable]:
    """Returns functions that run one trained DySan model and its classifiers.

    Args:
      method: ``dysan`` or one of its variants.

    Returns:
      ``compose(params) -> composed``, which composes the sanitizer's layers and needs
      to run only once, and ``one(key, composed, windows, public) -> (safe, classes,
      private)``: ``float32[N, time, channels]`` in physical units, ``int32[N]`` and
      ``int32[A, N]`` as in ``Tried``.
    """
    spec, config = method.spec, method.config
    nets = sanitizers.networks(spec, config)

    def compose(params):
        names = (*sanitizers.CLASSIFIERS, "averages")
        return nets.compose(params), {name: params[name] for name in names}

    def one(key, composed, windows, public):
        sanitizer, classifiers = composed
        mean, std = (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
        inputs = sanitizers.scale_windows(spec, config, (windows - mean) / std)
        safe, sides = nets.sanitize(key, sanitizer, inputs)
        logits = nets.predict(classifiers, safe, sides)[0]
        others = nets.discriminate(classifiers, safe, public, sides)[0]
        classes = [jnp.argmax(others[name], axis=1) for name in spec.private]
        outputs = sanitizers.scale_windows(spec, config, safe, back=True) * std + mean
        return outputs, jnp.argmax(logits, axis=1), jnp.stack(classes)

    return compose, one


def _to_half_precision(leaf):
    """Converts large arrays to half precision if their values are in its range."""
    if leaf[0].size < LARGE or jnp.max(jnp.abs(leaf)) > jnp.finfo(jnp.float16).max:
        return leaf
    return leaf.astype(jnp.float16)


def _to_float32(leaf):
    return leaf.astype(jnp.float32)


def runs(subject, length: int = LENGTH) -> np.ndarray:
    """Returns the run index of each window, ``int[N]``, from 0.

    A run is ``length`` consecutive windows of one subject, in input order. The last run
    of a subject may be shorter. Runs of a subject are numbered in order.

    Example:
      >>> runs(np.array([7, 7, 7, 3, 7]), length=2)
      array([1, 1, 2, 0, 2])
    """
    subject = np.asarray(subject)
    index = np.zeros(len(subject), int)
    for person in np.unique(subject):
        rows = np.flatnonzero(subject == person)
        index[rows] = np.arange(len(rows)) // length
    pairs = np.stack([np.asarray(subject, int), index])
    return np.unique(pairs, axis=1, return_inverse=True)[1].reshape(-1)


def scores(
    tried: Tried,
    groups,
    public,
    private,
    num_classes: Sequence[int],
    *,
    utility: float = 0.1,
    privacy: float = 0.9,
) -> np.ndarray:
    """Scores each model on each group of windows: the paper's S = xU + yP.

    U is the accuracy of the predictor. P is one minus the distance of a discriminator's
    accuracy from chance level, ``1 / classes``, averaged over the private attributes.

    Args:
      tried: outputs of the function from ``trier``.
      groups: ``int[N]`` group indices from 0, such as ``runs``; all zeros give one
        score per model.
      public: ``int[N]``, public classes, for example predicted by a ``labeller``.
      private: ``int[A, N]``, private classes of the wearers.
      num_classes: number of classes of each private attribute.
      utility, privacy: the weights x and y. The defaults are the paper's; the official
        program uses 0.2 and 0.8.

    Returns:
      ``float[K, G]``.
    """
    groups = np.asarray(groups)
    counts = np.bincount(groups)
    mean = lambda right: np.stack(
        [np.bincount(groups, row, len(counts)) / counts for row in right]
    )
    hidden = [
        1 - np.abs(1 / classes - mean(tried.private[:, index] == private[index]))
        for index, classes in enumerate(num_classes)
    ]
    accuracy = mean(tried.public == np.asarray(public))
    return utility * accuracy + privacy * np.mean(hidden, axis=0)


def choose(run_scores, groups, subject, prior, *, same_run: bool = False) -> np.ndarray:
    """Returns the model for each window: the best model of the wearer's previous run.

    The scores of a run therefore play no part in choosing the model for that run. The
    paper instead chooses the best model for the run itself and reports the accuracies
    that selected it. That report is biased: with 36 models and accuracies in
    {0, 0.2, ..., 1}, some are near one half by luck. Both choices depend on the
    wearer's private class, and leak it to an attacker who can distinguish the models.

    Args:
      run_scores: ``float[K, G]``, ``scores`` over ``runs``.
      groups: ``int[N]``, ``runs`` of the windows.
      subject: ``int[N]``, the subjects passed to ``runs``.
      prior: ``float[K]``, scores on separate calibration windows. The best model
        sanitizes a wearer's first run. The prior also breaks ties.
      same_run: whether to use the paper's choice; only to compare with its numbers.

    Returns:
      ``int[N]``, model indices; release ``tried.windows[choice, arange(N)]``.

    Example:
      Two models, two runs of one wearer: the second does well, then the first.

      >>> run_scores, groups = np.array([[0.5, 0.9], [0.8, 0.6]]), np.array([0, 0, 1])
      >>> choose(run_scores, groups, np.zeros(3, int), np.array([0.7, 0.6]))
      array([0, 0, 1])
      >>> choose(run_scores, groups, np.zeros(3, int), np.zeros(2), same_run=True)
      array([1, 1, 0])

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    groups, subject = np.asarray(groups), np.asarray(subject)
    order = np.argsort(-np.asarray(prior), kind="stable")
    rounded = np.round(np.asarray(run_scores), 9)  # Makes sums in another order equal.
    best = order[np.argmax(rounded[order], axis=0)]
    if same_run:
        return best[groups]
    owner = np.zeros(run_scores.shape[1], subject.dtype)
    owner[groups] = subject
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    before = np.where(first, order[0], np.concatenate([best[:1], best[:-1]]))
    return before[groups]
