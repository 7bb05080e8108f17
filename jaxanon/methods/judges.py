"""Classifiers that tell the classes of raw windows, learned beside models."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxanon.federated.algorithm import State
from jaxanon.methods import pool
from jaxanon.methods.central import Player, Room, central
from jaxanon.methods.draws import attributes
from jaxanon.methods.method import Method
from jaxanon.models.blinder import cross_entropy
from jaxanon.models.classifier import Classifier

GROUP = "classifiers"
DROPOUT = 0.3


def judges(spec, size: int, hyper: dict, step_size: str = "judge_step_size") -> Method:
    """A method that learns a classifier of each attribute on raw training windows.

    Args:
      spec: the windows' ``Spec``.
      size: windows of a batch, drawn from the whole pool.
      hyper: as in ``central``; must have ``step_size``.
      step_size: name of the hyper-parameter.

    Returns:
      ``Method`` whose one group is ``classifiers``; it anonymizes nothing.
    """
    nets = _networks(spec)

    def init_fn(key):
        window = jnp.zeros((1, spec.time, len(spec.channels)))
        keys = jax.random.split(key, len(nets))
        pairs = zip(nets.items(), keys, strict=True)
        return {GROUP: {n: net.init(one, window)["params"] for (n, net), one in pairs}}

    def loss_fn(key, params, hyper, batch, given):
        del hyper, given
        info, total = {}, 0.0
        for index, (name, net) in enumerate(nets.items()):
            dropout_key = jax.random.fold_in(key, index)
            own = {"params": params[GROUP][name]}
            logits = net.apply(own, batch.windows, dropout_key, DROPOUT)
            targets = jax.nn.one_hot(batch.labels[name], net.num_classes)
            loss = cross_entropy(logits, targets, jnp.ones(size))
            info[f"{name} classifier"] = loss
            total = total + loss
        return total, (info, {})

    room = Room(
        lambda clients: pool.pool(spec, clients),
        lambda key, data, copy: pool.draw(key, data, size),
        lambda data: pool.rounds_per_epoch(data, size),
        size,
    )
    return central(
        "judges",
        None,
        spec,
        room,
        init_fn=init_fn,
        players=(Player((GROUP,), loss_fn, step_size=step_size),),
        hyper=hyper,
        anonymize_fn=lambda key, params, windows: windows,
    )


def predict(spec, params, windows) -> dict[str, jax.Array]:
    """``int32[N]``, the class of each attribute, of standardised windows."""
    found = {}
    for name, net in _networks(spec).items():
        logits: Any = net.apply({"params": params[GROUP][name]}, windows)
        found[name] = jnp.argmax(logits, axis=-1)
    return found


def beside(models: Method, others: Method) -> Method:
    """``models`` with the judges ``others`` learned in the same rounds, in one state.

    Models that have a leading axis of copies share one set of classifiers this way.
    Both must take the same data and the same hyper-parameters; all else is that of
    ``models``, whose ``anonymize`` finds the classifiers among its parameters.
    """

    def init(key, **values):
        model_key, judge_key = jax.random.split(key)
        return _joined(
            models.init(model_key, **values), others.init(judge_key, **values)
        )

    def update(key, state, data):
        model_key, judge_key = jax.random.split(jax.random.fold_in(key, state.round))
        model, info = models.update(model_key, _part(state, False), data)
        judge, more = others.update(judge_key, _part(state, True), data)
        return _joined(model, judge), info | more

    return models._replace(init=init, update=update)


def _networks(spec):
    names = attributes(spec)
    return {name: Classifier(num_classes=spec.num_classes(name)) for name in names}


def _part(state: State, judging: bool) -> State:
    keep = lambda groups: {g: v for g, v in groups.items() if (g == GROUP) == judging}
    return state._replace(params=keep(state.params), opt_state=keep(state.opt_state))


def _joined(one: State, other: State) -> State:
    return one._replace(
        params=one.params | other.params, opt_state=one.opt_state | other.opt_state
    )
