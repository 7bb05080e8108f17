"""A last fit: steps that clients take of themselves when a federation has trained."""

import dataclasses

import jax

from jaxanon.federated import Steps
from jaxanon.federated.engine import local
from jaxanon.learners.learner import loss_of


def fitted(run, num_steps: int, step_size: float):
    """The run, whose clients predict after so many steps on their own windows.

    Batches are as large as in training; whatever a client would have predicted with is
    where it begins. Nothing is sent, and no budget spent.

    Args:
      run: ``jaxanon.Run`` of a learner, kept in no folder.
      num_steps: at least 1.
      step_size: of them.
    """
    learner = run.method
    steps = Steps(num_steps=num_steps, batch_size=learner.config.batch)
    loss_fn = loss_of(learner.predict.network, learner.spec)

    def model(key, state, data, client):
        model_key, fit_key = jax.random.split(key)
        layers = learner.predict.model(model_key, state, data, client)
        rows = jax.tree.map(lambda leaf: leaf[client], data.rows)
        return local.descend(
            loss_fn,
            *(fit_key, layers, rows, data.mask[client]),
            step_size=step_size,
            num_steps=steps.num_steps,
            batch_size=steps.batch_size,
        )[0]

    return dataclasses.replace(run, method=learner._replace(model=model))
