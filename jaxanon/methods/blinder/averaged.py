"""Federated averaging of Blinder's networks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from jaxanon.core.method import Federation, Method, Schedule
from jaxanon.federated.engine.algorithm import build
from jaxanon.federated.engine.cohort import cohort_size
from jaxanon.kernels import Phase
from jaxanon.methods.blinder.blinder import (
    anonymized,
    build_networks,
    classifier_loss,
    classifiers,
    init_classifiers,
    public_loss_fn,
)
from jaxanon.methods.common import client_batches
from jaxanon.models import blinder as models

_OPTIMIZER = optax.adam(1.0)  # Phases scale the steps by their learning rate.


class BlinderSystem(NamedTuple):
    """Blinder's networks, attribute classifiers and settings."""

    spec: Any  # jaxanon.datasets.Spec
    config: Any  # FedBlinderConfig
    networks: models.BlinderNetworks
    classifier_nets: dict  # attribute classifiers, by name

    def scale(self, hyper) -> models.LossScale:
        """Returns the loss weights of Blinder's eq. 4."""
        return models.LossScale(hyper["alpha"], hyper["beta"], hyper["gamma"])

    @property
    def official(self) -> bool:
        """True for the loss of the authors' program."""
        return self.config.variant == "official"


class Client(NamedTuple):
    """Inputs of a client's local training in one round."""

    params: dict  # parameters from the server
    hyper: dict
    data: client_batches.ClientWindows
    mask: jax.Array  # bool[n], False for padding


class LocalProgram(NamedTuple):
    """Training phases of a client's local step.

    ``draw_fn(key, step)`` returns a tuple with one input per phase; the first is a
    ``BlinderBatch`` of the client's windows without resampling. The phases run in order
    in each step, each with its own Adam state, which is reset in each round.
    """

    draw_fn: Callable
    phases: tuple[Phase, ...]


def build_system(spec, config) -> BlinderSystem:
    """Builds the networks and classifiers of ``config``.

    Raises:
      ValueError: if ``spec`` has no private attribute, or its windows are too short.
    """
    networks, classifier_nets = build_networks(spec, config), classifiers(spec, config)
    return BlinderSystem(spec, config, networks, classifier_nets)


def averaged(
    name: str,
    system: BlinderSystem,
    names: tuple[str, ...],
    program_fn: Callable,
    layout=None,
) -> Method:
    """Builds a method that trains a system by federated averaging.

    Each round samples a cohort, trains the current parameters on each client, and
    averages the results. Clients keep no state between rounds.

    Args:
      name: name of the method.
      system: ``BlinderSystem``.
      names: settings that are hyper-parameters.
      program_fn: ``(key, Client) -> LocalProgram``.
      layout: ``jaxanon.federated.Layout``; None is the default. It changes no result.

    Returns:
      ``Method``. Its ``info`` has the losses of the round's initial parameters on one
      batch per client.
    """
    spec, config, networks, classifier_nets = system

    @jax.jit  # Eager initialization takes seconds.
    def init_fn(key):
        vae_key, *keys = jax.random.split(key, 1 + len(classifier_nets))
        classes = spec.num_classes(spec.public)
        params = networks.init(vae_key, spec.time, len(spec.channels), classes)
        return params | {"classifiers": init_classifiers(keys, spec, classifier_nets)}

    def client(key, state, data, mask):
        program_key, step_key, grade_key, dropout_key = jax.random.split(key, 4)
        program = program_fn(program_key, Client(state.params, state.hyper, data, mask))
        batch = program.draw_fn(grade_key, jnp.int32(0))[0]
        scale = system.scale(state.hyper)
        objective = models.joint_objective(networks, scale, official=system.official)
        _, info = objective.loss_fn(state.params, batch)
        _, classifier_info = classifier_loss(
            state.params, batch, dropout_key, spec, classifier_nets
        )
        trained = _train(step_key, state.params, program, _num_steps(config, mask))
        return jax.tree.map(jnp.subtract, state.params, trained), info | classifier_info

    algorithm = build(
        init_fn,
        client,
        hyper={each: getattr(config, each) for each in names},
        server_optimizer=optax.sgd(1.0),
        cohort_size=lambda num_clients: cohort_size(config, num_clients),
        rounds_per_cohort=1,
        weighting=config.weighting,
        layout=layout,
    )

    def anonymize(key, state, windows):
        return anonymized(
            key, state.params, windows, spec, config, networks, classifier_nets
        )

    return Method(
        name=name,
        config=config,
        spec=spec,
        prepare=lambda clients: client_batches.prepare_population(spec, clients),
        init=algorithm.init,
        update=algorithm.update,
        anonymize=anonymize,
        schedule=Schedule(
            lambda data: 1, lambda data: cohort_size(config, len(data.mask))
        ),
        federation=Federation(algorithm, public_loss_fn(spec, classifier_nets)),
    )


def classifier_phase(system: BlinderSystem, hyper) -> Phase:
    """Returns the classifiers' training phase; its input is ``(batch, key)``."""

    def loss_fn(params, drawn):
        batch, key = drawn
        spec, nets = system.spec, system.classifier_nets
        return classifier_loss(params, batch, key, spec, nets)[0]

    return Phase(("classifiers",), loss_fn, hyper["learning_rate"])


def _num_steps(config, mask):
    """Returns the local steps: one pass per local round, or ``config.batches``."""
    num_real = jnp.sum(mask, dtype=jnp.int32)
    if config.batches is not None:
        return jnp.where(num_real > 0, config.local_rounds * config.batches, 0)
    size = jnp.maximum(jnp.minimum(config.batch_size, num_real), 1)
    return (config.local_rounds * num_real + size - 1) // size


def _train(key, params, program, num_steps):
    """Returns the parameters after ``num_steps`` local steps."""
    groups = lambda phase, params: {name: params[name] for name in phase.groups}

    def step(index, learned):
        params, opt_states = learned
        drawn = program.draw_fn(jax.random.fold_in(key, index), index)
        after = []
        for phase, opt_state, inputs in zip(
            program.phases, opt_states, drawn, strict=True
        ):
            moved, opt_state = _turn(
                phase, params, groups(phase, params), opt_state, inputs
            )
            params = params | moved
            after.append(opt_state)
        return params, tuple(after)

    opt_states = tuple(
        _OPTIMIZER.init(groups(phase, params)) for phase in program.phases
    )
    return jax.lax.fori_loop(0, num_steps, step, (params, opt_states))[0]


def _turn(phase, params, trained, opt_state, inputs):
    """Runs one phase; returns its parameter groups and optimizer state."""
    frozen = jax.lax.stop_gradient(params)
    if phase.inputs_fn is not None:
        inputs = jax.lax.stop_gradient(phase.inputs_fn(params, inputs))

    def train_step(learned, _):
        trained, opt_state = learned
        loss_fn = lambda trained: phase.loss_fn(frozen | trained, inputs)
        grads = jax.grad(loss_fn)(trained)
        steps, opt_state = _OPTIMIZER.update(grads, opt_state, trained)
        move = lambda param, step: param + phase.learning_rate * step
        return (jax.tree.map(move, trained, steps), opt_state), None

    learned, _ = jax.lax.scan(train_step, (trained, opt_state), length=phase.num_steps)
    return learned
