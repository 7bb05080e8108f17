"""Systems whose clients train on their own, round after round, and are averaged."""

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
    classifiers,
    client_loss_of,
    init_classifiers,
    judging_loss,
    networks_of,
)
from jaxanon.methods.common import client_batches
from jaxanon.models import blinder as models

_OPTIMIZER = optax.adam(1.0)  # Phases say how long their steps are.


class BlinderSystem(NamedTuple):
    """Blinder's networks and what goes with them."""

    spec: Any  # jaxanon.datasets.Spec
    config: Any  # FedBlinderConfig
    networks: models.BlinderNetworks
    judges: dict  # classifiers, by attribute

    def scale(self, hyper) -> models.LossScale:
        """The weights of Blinder's eq. 4."""
        return models.LossScale(hyper["alpha"], hyper["beta"], hyper["gamma"])

    @property
    def released(self) -> bool:
        """Whether the loss is as in Blinder's released program."""
        return self.config.form == "released"


class Client(NamedTuple):
    """What a client has as a round begins."""

    params: dict  # that it was sent
    hyper: dict
    own: client_batches.Own
    mask: jax.Array  # bool[n], False where a window is padding


class Course(NamedTuple):
    """What a client does at every step, on windows that it draws afresh.

    ``draw_fn(key, step)`` is a tuple with what each of the phases reads; the first has
    the client's windows as they are, a ``Batch``. Phases take turns in their order, by
    Adam, with moments that are the client's own and begin at 0.
    """

    draw_fn: Callable
    phases: tuple[Phase, ...]


def system_of(spec, config) -> BlinderSystem:
    """The system that ``config`` asks for.

    Raises:
      ValueError: if nothing is private, or the windows are too short for it.
    """
    networks, judges = networks_of(spec, config), classifiers(spec, config)
    return BlinderSystem(spec, config, networks, judges)


def averaged(
    name: str,
    system: BlinderSystem,
    names: tuple[str, ...],
    course_fn: Callable,
    layout=None,
) -> Method:
    """A method of federated averaging.

    A round: a cohort is drawn, each of its clients trains the parameters that it was
    sent, and the mean of theirs is kept. Only running sums outlive a client's training.

    Args:
      name: of the method.
      system: ``BlinderSystem``.
      names: settings that are hyper-parameters.
      course_fn: ``(key, Client) -> Course``.
      layout: ``jaxanon.federated.Layout``; None is the default. Changes no result.

    Returns:
      ``Method``. Its ``info`` is of the parameters that clients were sent, on a batch
      of each one's windows.
    """
    spec, config, networks, judges = system

    @jax.jit  # Operation by operation, networks take seconds to set up.
    def init_fn(key):
        vae_key, *keys = jax.random.split(key, 1 + len(judges))
        classes = spec.num_classes(spec.public)
        params = networks.init(vae_key, spec.time, len(spec.channels), classes)
        return params | {"classifiers": init_classifiers(keys, spec, judges)}

    def client(key, state, own, mask):
        course_key, step_key, grade_key, dropout_key = jax.random.split(key, 4)
        course = course_fn(course_key, Client(state.params, state.hyper, own, mask))
        batch = course.draw_fn(grade_key, jnp.int32(0))[0]
        scale = system.scale(state.hyper)
        objective = models.joint_objective(networks, scale, released=system.released)
        _, info = objective.loss_fn(state.params, batch)
        _, judged = judging_loss(state.params, batch, dropout_key, spec, judges)
        trained = _train(step_key, state.params, course, _num_steps(config, mask))
        return jax.tree.map(jnp.subtract, state.params, trained), info | judged

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
        return anonymized(key, state.params, windows, spec, config, networks, judges)

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
        federation=Federation(algorithm, client_loss_of(spec, judges)),
    )


def judging(system: BlinderSystem, hyper) -> Phase:
    """The classifiers' phase, on ``(Batch, key)``."""

    def loss_fn(params, drawn):
        batch, key = drawn
        return judging_loss(params, batch, key, system.spec, system.judges)[0]

    return Phase(("classifiers",), loss_fn, hyper["step_size"])


def _num_steps(config, mask):
    """Steps that hold all of a client's windows once per local round, or as told."""
    num_real = jnp.sum(mask, dtype=jnp.int32)
    if config.batches is not None:
        return jnp.where(num_real > 0, config.local_rounds * config.batches, 0)
    size = jnp.maximum(jnp.minimum(config.batch, num_real), 1)
    return (config.local_rounds * num_real + size - 1) // size


def _train(key, params, course, num_steps):
    """The parameters after ``num_steps`` of a course."""
    groups = lambda phase, params: {name: params[name] for name in phase.groups}

    def step(index, learned):
        params, opt_states = learned
        drawn = course.draw_fn(jax.random.fold_in(key, index), index)
        after = []
        for phase, opt_state, inputs in zip(
            course.phases, opt_states, drawn, strict=True
        ):
            moved, opt_state = _turn(
                phase, params, groups(phase, params), opt_state, inputs
            )
            params = params | moved
            after.append(opt_state)
        return params, tuple(after)

    opt_states = tuple(
        _OPTIMIZER.init(groups(phase, params)) for phase in course.phases
    )
    return jax.lax.fori_loop(0, num_steps, step, (params, opt_states))[0]


def _turn(phase, params, moving, opt_state, inputs):
    """All steps of one phase; what it moved, and its optimizer's state."""
    resting = jax.lax.stop_gradient(params)
    if phase.inputs_fn is not None:
        inputs = jax.lax.stop_gradient(phase.inputs_fn(params, inputs))

    def descend(learned, _):
        moving, opt_state = learned
        grads = jax.grad(lambda moving: phase.loss_fn(resting | moving, inputs))(moving)
        steps, opt_state = _OPTIMIZER.update(grads, opt_state, moving)
        move = lambda param, step: param + phase.learning_rate * step
        return (jax.tree.map(move, moving, steps), opt_state), None

    learned, _ = jax.lax.scan(descend, (moving, opt_state), length=phase.num_steps)
    return learned
