"""Builders of learners that group clients."""

import jax

from jaxanon import federated
from jaxanon.learners.builders import STEP, _personal
from jaxanon.learners.learner import Learner, network_of


def clusterfl(spec, config) -> Learner:
    """ClusterFL; see ``jaxanon.federated.cluster_fl``.

    Models are compared on windows of noise around levels of noise, which nobody has to
    hide; a network with one output is taken to predict a number.
    """
    network = network_of(spec, config)
    shape = (config.probe, spec.time, len(spec.channels))

    def probe(key):
        level_key, key = jax.random.split(key)
        level = jax.random.normal(level_key, (shape[0], 1, shape[2]))
        return level + jax.random.normal(key, shape)

    def outputs(layers):
        return network.apply(layers, jax.numpy.zeros(shape))

    layers = jax.eval_shape(network.init, jax.eval_shape(jax.random.key, 0))
    numbers = jax.eval_shape(outputs, layers).shape[-1] == 1
    names = (*STEP, "alpha", "beta", "rho", "temperature")
    return _personal(
        "clusterfl",
        spec,
        config,
        federated.cluster_fl,
        names,
        num_clusters=config.clusters,
        outputs_fn=network.apply,
        probe_fn=probe,
        numbers=numbers,
        every=config.every,
        form=config.form,
    )
