"""DySan's online phase: which of several models rewrites which windows of a wearer."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.attacks import attackers
from jaxanon.core.method import Method
from jaxanon.datasets.spec import standardise
from jaxanon.methods.dysan import sanitizers

LENGTH = 5  # Windows in a run, as published.

LARGE = 1 << 14  # Numbers from which on an array is kept in half precision.


class Tried(NamedTuple):
    """What K models make of the same N windows."""

    windows: np.ndarray  # float32[K, N, time, channels], rewritten, in physical units
    public: np.ndarray  # int32[K, N], the class that each one's predictor reads there
    private: np.ndarray  # int32[K, A, N], what its discriminators read, by attribute


def labeller(key, spec, windows, labels) -> Callable:
    """A random forest that tells the public class of raw windows.

    Args:
      key: typed PRNG key.
      spec: the windows' ``Spec``.
      windows: ``float[N, time, channels]`` of a calibration, in physical units, such as
        a wearer records who is asked to do one activity after another.
      labels: ``int[N]``, their public classes.

    Returns:
      A function from ``float[M, time, channels]`` to ``int32[M]``.

    Example:
      >>> from jaxanon import datasets
      >>> spec, train, test = datasets.load("smartwatch")
      >>> own = train.windows[::50], train.labels[spec.public][::50]
      >>> labeller(jax.random.key(0), spec, *own)(test.windows[:3]).shape
      (3,)

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    num_classes = spec.num_classes(spec.public)
    forest = attackers.get("forest")
    read = forest.fit(key, standardise(spec, windows), labels, num_classes)
    return lambda windows: (
        read(standardise(spec, windows)).argmax(axis=1).astype(np.int32)
    )


def trier(method: Method, states: Sequence) -> Callable:
    """Makes K trained models of DySan ready to be tried side by side.

    Args:
      method: what all of them are of; ``dysan`` or what it re-implements.
      states: of ``train`` or ``sweep``, one for each model.

    Returns:
      ``(key, windows, public) -> Tried``, with ``windows`` ``float[N, time, channels]``
      in physical units and ``public`` ``int[N]``, which the discriminators are told.
      The sanitizers are composed once, here; a call compiles for each new N. Large
      weights are kept in half precision, for a device spends its time on reading them;
      windows differ by about a thousandth of a deviation from the method's own.

    Raises:
      ValueError: without states.
    """
    if not len(states):
        raise ValueError("states must hold at least one trained model, got none.")
    compose, one = once(method)
    stack = lambda *leaves: jnp.stack([jnp.asarray(leaf) for leaf in leaves])
    params = jax.tree.map(stack, *(dict(state.params) for state in states))
    composed = jax.jit(lambda params: jax.lax.map(compose, params))(params)
    kept = jax.tree.map(_halved, composed)

    @jax.jit
    def all_of_them(key, kept, windows, public):
        models = jax.random.split(key, len(states)), kept
        own = lambda model: one(
            model[0], jax.tree.map(_whole, model[1]), windows, public
        )
        if jax.default_backend() == "cpu":  # One model's weights at a time in cache.
            return jax.lax.map(own, models)
        return jax.vmap(own)(models)

    def try_all(key, windows, public):
        made = all_of_them(key, kept, windows, jnp.asarray(public))
        return Tried(*map(np.asarray, made))

    return try_all


def once(method: Method) -> tuple[Callable, Callable]:
    """What one trained model of DySan makes of windows, and what its judges read there.

    Args:
      method: ``dysan`` or what it re-implements.

    Returns:
      ``compose(params) -> composed``, the sanitizer's layers put together, to be done
      once; and ``one(key, composed, windows, public) -> (safe, classes, private)``:
      ``float32[N, time, channels]`` in physical units, ``int32[N]`` and ``int32[A, N]``
      as of ``Tried``.
    """
    spec, config = method.spec, method.config
    nets = sanitizers.networks(spec, config)

    def compose(params):
        judges = {name: params[name] for name in (*sanitizers.JUDGES, "averages")}
        return nets.compose(params), judges

    def one(key, composed, windows, public):
        sanitizer, judges = composed
        mean, std = (jnp.float32(x)[None, None] for x in (spec.mean, spec.std))
        given = sanitizers.seen(spec, config, (windows - mean) / std)
        safe, sides = nets.sanitize(key, sanitizer, given)
        read = nets.predict(judges, safe, sides)[0]
        others = nets.discriminate(judges, safe, public, sides)[0]
        classes = [jnp.argmax(others[name], axis=1) for name in spec.private]
        shown = sanitizers.seen(spec, config, safe, back=True) * std + mean
        return shown, jnp.argmax(read, axis=1), jnp.stack(classes)

    return compose, one


def _halved(leaf):
    """Large arrays, one for each model, in half precision if that holds them."""
    if leaf[0].size < LARGE or jnp.max(jnp.abs(leaf)) > jnp.finfo(jnp.float16).max:
        return leaf
    return leaf.astype(jnp.float16)


def _whole(leaf):
    return leaf.astype(jnp.float32)


def runs(subject, length: int = LENGTH) -> np.ndarray:
    """Numbers of the runs that windows belong to, ``int[N]``, from 0.

    A run is ``length`` consecutive windows of a subject, in the order given; the last
    one of a subject may be shorter. The runs of a subject are numbered in order.

    Example:
      >>> runs(np.array([7, 7, 7, 3, 7]), length=2)
      array([1, 1, 2, 0, 2])
    """
    subject = np.asarray(subject)
    place = np.zeros(len(subject), int)
    for one in np.unique(subject):
        own = np.flatnonzero(subject == one)
        place[own] = np.arange(len(own)) // length
    pairs = np.stack([np.asarray(subject, int), place])
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
    """How good each model was for each group of windows.

    ``utility`` times the accuracy of its predictor, and ``privacy`` times one minus the
    distance of its discriminator's accuracy from chance, ``1 / classes``, on average
    over the private attributes: the paper's S = xU + yP.

    Args:
      tried: of ``trier``.
      groups: ``int[N]`` from 0, such as ``runs``; zeros for one score of each model.
      public: ``int[N]``, public classes, as a ``labeller`` tells them.
      private: ``int[A, N]``, the wearers' own classes.
      num_classes: of each private attribute.
      utility, privacy: the published x and y; the released program has 0.2 and 0.8.

    Returns:
      ``float[K, G]``.
    """
    groups = np.asarray(groups)
    counts = np.bincount(groups)
    mean = lambda right: np.stack(
        [np.bincount(groups, row, len(counts)) / counts for row in right]
    )
    hidden = [
        1 - np.abs(1 / classes - mean(tried.private[:, number] == private[number]))
        for number, classes in enumerate(num_classes)
    ]
    kept = mean(tried.public == np.asarray(public))
    return utility * kept + privacy * np.mean(hidden, axis=0)


def choose(found, groups, subject, prior, *, same_run: bool = False) -> np.ndarray:
    """The model for each window: the best for the wearer's run before.

    So nothing that is then said of the windows of a run has had a part in choosing for
    them. The published choice is the best for the run itself, reported by the same
    accuracies that it was found by: of 36 values in {0, 0.2, ..., 1} some are near one
    half, whatever the models do. Either choice depends on the wearer's private class,
    and tells of it to whoever can tell the models apart.

    Args:
      found: ``float[K, G]``, of ``scores`` over ``runs``.
      groups: ``int[N]``, of ``runs``.
      subject: ``int[N]``, as ``runs`` was given.
      prior: ``float[K]``, scores on a calibration of other windows; the best of them
        rewrites a wearer's first run, and among equals it is the better one here.
      same_run: the published choice; only for comparison with its numbers.

    Returns:
      ``int[N]``, numbers of models; ``tried.windows[choice, arange(N)]`` may leave.

    Example:
      Two models, two runs of one wearer: the second does well, then the first.

      >>> found, groups = np.array([[0.5, 0.9], [0.8, 0.6]]), np.array([0, 0, 1])
      >>> choose(found, groups, np.zeros(3, int), np.array([0.7, 0.6]))
      array([0, 0, 1])
      >>> choose(found, groups, np.zeros(3, int), np.zeros(2), same_run=True)
      array([1, 1, 0])

    References:
      Boutet et al., DySan, AsiaCCS 2021, section 3.3.
    """
    groups, subject = np.asarray(groups), np.asarray(subject)
    order = np.argsort(-np.asarray(prior), kind="stable")
    rounded = np.round(np.asarray(found), 9)  # Equal sums of other summands are equal.
    best = order[np.argmax(rounded[order], axis=0)]
    if same_run:
        return best[groups]
    owner = np.zeros(found.shape[1], subject.dtype)
    owner[groups] = subject
    first = np.concatenate([[True], owner[1:] != owner[:-1]])
    before = np.where(first, order[0], np.concatenate([best[:1], best[:-1]]))
    return before[groups]
