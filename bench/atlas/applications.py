"""What the comparison with Atlas trains, and on what."""

from typing import Any, NamedTuple

EPSILON, DELTA = 2.0, 1e-5
LAST_FIT = 20  # Steps, as many as Atlas's.


class Application(NamedTuple):
    """One data set, and how clients learn from it."""

    name: str
    dataset: str
    load: dict[str, Any]  # more arguments of jaxanon.load
    metric: str  # accuracy or r2
    records: int  # training windows that no client has more of
    settings: dict[str, Any]  # of every learner that has them
    rounds: int
    clients: tuple[int, ...]  # how many take part, for the second question
    published: dict[str, float]  # what the chapter's text tells of its own data
    stands_for: str
    learning_rates: tuple[float, ...] = (
        0.02,
        0.05,
        0.1,
        0.3,
        1.0,
    )  # a method takes one
    only_named: bool = False  # whether it has to be asked for


class Entry(NamedTuple):
    """One row: a learner, its settings, and what kind of method it is."""

    name: str
    learner: str
    kind: str  # traditional, federated, personal, noisy
    settings: dict[str, Any]
    tuned_as: str  # the entry whose step size it takes
    scale: float = 1.0  # of the application's step sizes
    tuned: str = "learning_rate"  # which setting they are
    last_fit: int = 0  # steps that each client takes of itself when all is trained


def application(name, dataset, stands_for, **given) -> Application:
    """An ``Application`` with the defaults of most."""
    values = {
        "load": given.pop("load", {}),
        "metric": "accuracy",
        "rounds": 30,
        "settings": {"model": "cnn", "batch_size": 32, "local_steps": 10},
        "clients": (5, 10, 20),
        "published": {},
    }
    values |= {"name": name, "dataset": dataset, "stands_for": stands_for}
    return Application(**values | given)


APPLICATIONS = (
    application(
        "UCI HAPT",
        "uci_hapt",
        "UCI-HAR",
        records=300,
        published={"Atlas": 94, "ClusterFL": 98},
    ),
    application(
        "Sleep-EDF",
        "sleep_edf",
        "MASS",
        records=1300,
        clients=(3, 6),
        published={
            "Atlas": 85,
            "centralized clustering": 89,
            "ClusterFL": 88,
            "LDP-FL": 78,
        },
    ),
    application(
        "WISDM watch",
        "wisdm",
        "WISDM-W",
        load={"preset": "watch-accel"},
        records=100,
        clients=(10, 20, 40),
    ),
    application("Smart homes", "smart_homes", "CASAS", records=2000, clients=(3, 5)),
    application(
        "Homes' energy",
        "tracebase",
        "Pecan Street",
        load={"preset": "day24"},
        metric="r2",
        records=550,
        learning_rates=(0.003, 0.01, 0.03, 0.1, 0.3),
        settings={
            **{"model": "mlp", "hidden_sizes": (64, 64), "shared_layers": 2},
            **{"batch_size": 32, "local_steps": 10, "finetune_learning_rate": 0.01},
        },
        clients=(10, 30, 60),
    ),
    # Work for a GPU, on data that have to be fetched.
    application(
        "Photographs",
        "cifar10",
        "CIFAR-10",
        records=8000,
        settings={"model": "resnet32", "batch_size": 32, "local_steps": 10},
        clients=(5, 10),
        only_named=True,
    ),
)


def entry(name, learner, kind="personal", tuned_as=None, **settings) -> Entry:
    """An ``Entry`` with the defaults of most."""
    return Entry(name, learner, kind, settings, tuned_as or name)


def noisy(name, learner, epsilon=EPSILON, tuned_as=None, **settings) -> Entry:
    """One whose clients send noise."""
    settings = {"epsilon": epsilon, "delta": DELTA, **settings}
    return entry(name, learner, "noisy", tuned_as, **settings)


ENTRIES = {
    each.name: each
    for each in (
        entry("localized", "localized", "traditional"),
        entry("centralized", "centralized", "traditional"),
        entry("centralized clustering", "centralized_clustering", "traditional"),
        entry("FedAvg", "fedavg", "federated"),
        entry("FedProx", "fedprox", "federated"),
        entry("SCAFFOLD", "scaffold", "federated"),
        entry("FedPer", "fedper"),
        entry("FedRep", "fedrep"),
        # Its step size is of masks, whose gradients are small.
        entry("FedMask", "fedmask")._replace(scale=2000.0),
        entry("FedDL", "feddl"),
        entry("ClusterFL", "clusterfl"),
        entry("Per-FedAvg", "per_fedavg"),
        entry("Ditto", "ditto"),
        entry("pFedMe", "pfedme"),
        entry("Atlas, no noise", "atlas", epsilon=0.0),
        # Clients of the others predict with what training left them.
        entry(
            *("Atlas, no noise, no last fit", "atlas"),
            tuned_as="Atlas, no noise",
            epsilon=0.0,
            own_steps=0,
        ),
        # What Atlas's clients do when all is trained, others' may do as well.
        *(
            entry(f"{name}, last fit", learner, kind, tuned_as=name)._replace(
                last_fit=LAST_FIT
            )
            for name, learner, kind in (
                ("FedAvg", "fedavg", "federated"),
                ("FedPer", "fedper", "personal"),
            )
        ),
        # Without noise masks may move faster: with it, that moves them by the noise.
        entry(
            *("Atlas, no noise, fast masks, no last fit", "atlas"),
            tuned_as="Atlas, no noise",
            epsilon=0.0,
            own_steps=0,
            mask_learning_rate=10.0,
        ),
        entry(
            *("Atlas, no noise, 3 layers", "atlas"),
            tuned_as="Atlas, no noise",
            epsilon=0.0,
            max_layers=3,
        ),
        noisy("FedSGD-LDP", "fedsgd_ldp"),
        noisy("FedSGD-LDP, last fit", "fedsgd_ldp", tuned_as="FedSGD-LDP")._replace(
            last_fit=LAST_FIT
        ),
        noisy("LDP-FL", "ldp_fl"),
        # Of a whole client: what the server takes of so much noise has to be little.
        noisy("DP-FedAvg", "dp_fedavg")._replace(
            scale=0.1, tuned="server_learning_rate"
        ),
        noisy("Atlas", "atlas"),
        noisy("Atlas, no last fit", "atlas", tuned_as="Atlas", finetune_steps=0),
        noisy("Atlas, as claimed", "atlas", tuned_as="Atlas", noise_interpretation="C"),
    )
}
OVER_CLIENTS = ("FedAvg", "FedPer", "ClusterFL", "FedSGD-LDP", "LDP-FL", "Atlas")
OVER_EPSILON = ("FedSGD-LDP", "LDP-FL", "Atlas", "Atlas, as claimed")
EPSILONS = (0.5, 1.0, 4.0, 8.0)
OVER_ROUNDS = (
    *("FedAvg", "FedPer", "ClusterFL"),
    *("Atlas, no noise", "Atlas, no noise, 3 layers", "Atlas"),
)
# Whose step size depends on how much noise is left in what clients send together.
TUNED_APART = ("FedSGD-LDP", "Atlas")
JOINING = ("FedAvg", "FedPer", "Atlas, no noise", "Atlas")
SMOKE = (
    application(
        "Smartwatch",
        "smartwatch",
        "a test",
        load={"public": "exercise", "private": ["side"]},
        records=1200,
        clients=(2,),
        settings={
            "model": "mlp",
            "hidden_sizes": (8,),
            "batch_size": 16,
            "local_steps": 2,
        },
    ),
)
