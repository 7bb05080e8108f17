"""What builders of learners share: steps, rounds, and clients that keep something."""

from jaxanon.federated import Rounds, Steps
from jaxanon.learners.learner import Learner, learner, loss_of, network_of
from jaxanon.methods.blinder import cohort_size

STEP = ("step_size",)


def steps_of(config, num_steps: int | None = None) -> Steps:
    """A client's steps in a round, as a config has them.

    Args:
      config: ``LearnerConfig``.
      num_steps: in place of its ``local_steps``.

    Example:
      >>> from jaxanon.learners.config import LearnerConfig
      >>> steps_of(LearnerConfig(batch=8), 3)
      Steps(num_steps=3, batch_size=8, shuffle=True)
    """
    num_steps = config.local_steps if num_steps is None else num_steps
    return Steps(num_steps=num_steps, batch_size=config.batch)


def rounds_of(spec, config, weighting: str) -> Rounds:
    """Who takes part in a round, as a config has it.

    Args:
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      weighting: as ``Rounds`` takes it.

    Example:
      >>> from jaxanon.datasets import load
      >>> from jaxanon.learners.config import LearnerConfig
      >>> spec = load("smartwatch").spec  # of ten people
      >>> rounds_of(spec, LearnerConfig(cohort=0.3), "rows").cohort_size
      3
    """
    size = cohort_size(config, spec.num_classes("subject"))
    return Rounds(cohort_size=size, weighting=weighting)


def personal_learner(
    name: str, spec, config, make, hyper, *, weighting: str = "rows", **more
) -> Learner:
    """A learner of one of the federated functions whose clients keep something.

    Args:
      name: of the learner.
      spec: ``jaxanon.datasets.Spec``.
      config: ``LearnerConfig``.
      make: ``(init_fn, loss_fn, steps, *, num_clients, rounds, **more) -> algorithm``.
      hyper: settings that are its hyper-parameters.
      weighting: as ``Rounds`` takes it.
      **more: of ``make``.

    Example:
      >>> from jaxanon import federated
      >>> from jaxanon.datasets import load
      >>> from jaxanon.learners.config import LearnerConfig
      >>> spec = load("smartwatch").spec
      >>> make = federated.localized
      >>> personal_learner("alone", spec, LearnerConfig(filters=(4,)), make, STEP).name
      'alone'
    """
    network = network_of(spec, config)
    algorithm = make(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        num_clients=spec.num_classes("subject"),
        rounds=rounds_of(spec, config, weighting),
        **more,
    )
    return learner(name, spec, config, algorithm, network, hyper)
