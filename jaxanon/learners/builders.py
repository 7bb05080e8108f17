"""One builder for each learner: its algorithm, on the windows of a data set."""

from jaxanon import federated
from jaxanon.learners import guarantee
from jaxanon.learners.atlas_guarantee import of_atlas
from jaxanon.learners.learner import Learner, learner, loss_of, network_of
from jaxanon.learners.parts import STEP, personal_learner, rounds_of, steps_of
from jaxanon.methods.blinder import cohort_size


def fedavg(spec, config, weighting="rows") -> Learner:
    """FedAvg; see ``jaxanon.federated.fed_avg``."""
    network = network_of(spec, config)
    algorithm = federated.fed_avg(
        network.init,
        loss_of(network, spec),
        num_steps=config.local_steps,
        batch_size=config.batch,
        cohort_size=cohort_size(config, spec.num_classes("subject")),
        weighting=weighting,
    )
    return learner("fedavg", spec, config, algorithm, network, STEP)


def centralized(spec, config) -> Learner:
    """All windows in one place, and gradient descent: what a federation avoids."""
    network = network_of(spec, config)
    algorithm = federated.fed_avg(
        network.init,
        loss_of(network, spec),
        num_steps=config.local_steps,
        batch_size=config.batch,
    )
    return learner("centralized", spec, config, algorithm, network, STEP, pooled=True)


def localized(spec, config) -> Learner:
    """Every client alone; see ``jaxanon.federated.localized``."""
    return personal_learner("localized", spec, config, federated.localized, STEP)


def fedprox(spec, config) -> Learner:
    """FedProx; see ``jaxanon.federated.fed_prox``."""
    return personal_learner("fedprox", spec, config, federated.fed_prox, (*STEP, "mu"))


def fedper(spec, config) -> Learner:
    """FedPer; see ``jaxanon.federated.fed_per``."""
    own = {"own_layers": _own_layers(spec, config)}
    return personal_learner("fedper", spec, config, federated.fed_per, STEP, **own)


def fedrep(spec, config) -> Learner:
    """FedRep; see ``jaxanon.federated.fed_rep``."""
    own = {"own_layers": _own_layers(spec, config), "own_steps": steps_of(config)}
    return personal_learner("fedrep", spec, config, federated.fed_rep, STEP, **own)


def ditto(spec, config) -> Learner:
    """Ditto; see ``jaxanon.federated.ditto``."""
    own = {"own_steps": steps_of(config)}
    return personal_learner(
        "ditto", spec, config, federated.ditto, (*STEP, "pull"), **own
    )


def scaffold(spec, config) -> Learner:
    """SCAFFOLD; see ``jaxanon.federated.scaffold``."""
    names = (*STEP, "server_step_size")
    make = federated.scaffold
    return personal_learner("scaffold", spec, config, make, names, weighting="clients")


def pfedme(spec, config) -> Learner:
    """pFedMe; see ``jaxanon.federated.p_fed_me``."""
    names = (*STEP, "server_step_size", "pull", "mix")
    own = {"own_steps": config.own_steps, "weighting": "clients"}
    return personal_learner("pfedme", spec, config, federated.p_fed_me, names, **own)


def perfedavg(spec, config) -> Learner:
    """Per-FedAvg; see ``jaxanon.federated.per_fed_avg``."""
    names = (*STEP, "adaptation_step_size")
    more = {"second_order": config.second_order}
    return personal_learner(
        "perfedavg", spec, config, federated.per_fed_avg, names, **more
    )


def fedsgd_ldp(spec, config) -> Learner:
    """FedSGD-LDP; see ``jaxanon.federated.fed_sgd_ldp``. Without ε it is FedAvg."""
    found = guarantee.of_steps(config)
    if found is None:
        made = fedavg(spec, config, weighting="clients")
        return made._replace(name="fedsgd_ldp")
    network = network_of(spec, config)
    algorithm = federated.fed_sgd_ldp(
        network.init,
        loss_of(network, spec),
        lots=found.lots,
        num_steps=config.local_steps,
        num_clients=spec.num_classes("subject"),
        rounds=rounds_of(spec, config, "clients"),
    )
    return learner(
        "fedsgd_ldp",
        spec,
        config,
        algorithm,
        network,
        (*STEP, "max_norm"),
        guarantee=found,
        hyper_values={"noise_multiplier": found.noise_multiplier},
    )


def atlas(spec, config) -> Learner:
    """Atlas; see ``jaxanon.federated.atlas``."""
    found = of_atlas(config, spec.num_classes("subject"))
    network = network_of(spec, config)
    algorithm = federated.atlas(
        network.init,
        loss_of(network, spec),
        steps_of(config),
        num_clients=spec.num_classes("subject"),
        lots=None if found is None else found.lots,
        guarantee="example" if found is None else config.guarantee,
        reading=config.reading,
        clipping=config.clipping,
        scores=config.scores,
        public_scores=_public_scores(config, network),
        send_every_layer=config.send_every_layer,
        most_layers=config.most_layers,
        send_slots=config.send_slots or None,
        own_steps=steps_of(config, config.own_steps) if config.own_steps else None,
        rounds=rounds_of(spec, config, "clients"),
    )
    names = (*STEP, "mask_step_size", "threshold", "first_score", "max_norm")
    names += ("own_step_size", "score_norm")
    multiplier = 0.0 if found is None else found.noise_multiplier
    made = learner(
        "atlas",
        spec,
        config,
        algorithm,
        network,
        names,
        guarantee=found,
        hyper_values={
            "noise_multiplier": multiplier,
            "score_multiplier": getattr(found, "score_multiplier", None) or 0.0,
        },
    )

    def init(key, **values):
        if found is not None and "score_multiplier" in values:
            raise ValueError(
                "score_multiplier follows from epsilon, delta, rounds and score_share, "
                "and what is guaranteed from it; set those."
            )
        return made.init(key, **values)

    return made._replace(init=init)


def _public_scores(config, network):
    """Scores by name, of layers that there are."""
    given = config.public_scores
    if given is not None and set(given) != set(network.layers):
        raise ValueError(
            f"public_scores must be of the layers {list(network.layers)}, one of each, "
            f"got {list(given)}."
        )
    return given


def _own_layers(spec, config):
    """Layers after the shared ones, in the order in which windows meet them."""
    layers = network_of(spec, config).layers
    if config.shared_layers > len(layers):
        raise ValueError(
            f"shared_layers must be at most the {len(layers)} layers of the model, got "
            f"{config.shared_layers}."
        )
    return layers[config.shared_layers :]
