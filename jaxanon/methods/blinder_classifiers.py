"""Classifiers that are learned beside Blinder, of what must be known of a window."""

import jax
import jax.numpy as jnp

from jaxanon.methods import draws
from jaxanon.models import blinder as models
from jaxanon.models.classifier import Classifier


def classifiers(spec, config) -> dict[str, Classifier]:
    """Classifiers of what has to be known of a window before it is rebuilt."""
    known = (spec.public,)
    if config.anonymization != "stochastic":
        known = draws.attributes(spec)
    return {name: Classifier(num_classes=spec.num_classes(name)) for name in known}


def init_classifiers(keys, spec, judges):
    """Parameters of the classifiers, by name."""
    window = jnp.zeros((1, spec.time, len(spec.channels)))
    return {
        name: net.init(one, window)["params"]
        for (name, net), one in zip(judges.items(), keys, strict=True)
    }


def judging_loss(params, batch, key, spec, judges):
    """Cross-entropy of the classifiers, summed, and of each; ``key`` for dropout."""
    info, total = {}, 0.0
    targets = dict(
        zip(draws.attributes(spec), (batch.public, *batch.private), strict=True)
    )
    for index, (name, net) in enumerate(judges.items()):
        own_key = jax.random.fold_in(key, index)
        one = {"params": params["classifiers"][name]}
        logits = net.apply(one, batch.windows, own_key, 0.3)
        loss = models.cross_entropy(logits, targets[name], batch.weights)
        info[f"{name} classifier"] = loss
        total = total + loss
    return total, info


def client_loss_of(spec, judges):
    """Of a ``Method``: the loss of the public attribute's classifier, of one window.

    The best case of who inverts gradients: a step on one window, without dropout.
    Blinder's clients send a mean over ``extra + query`` windows with it, those of its
    averaged forms what many steps add up to.
    """
    net = judges[spec.public]

    def loss_fn(params, window, label):
        logits = net.apply({"params": params}, window[None])
        return models.cross_entropy(logits, label[None], jnp.ones(1))

    return lambda state: (loss_fn, state.params["classifiers"][spec.public])
