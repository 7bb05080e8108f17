"""Learners and data sets of the comparison with Atlas."""

from typing import Any, NamedTuple

EPSILON, DELTA = 2.0, 1e-5
LAST_FIT = 20  # Steps of local fine-tuning, as many as Atlas's.


class Application(NamedTuple):
    """A data set and the settings of clients that learn from it."""

    name: str
    dataset: str
    load: dict[str, Any]  # further arguments of jaxanon.load
    metric: str  # accuracy or r2
    records: int  # maximum number of training windows per client
    settings: dict[str, Any]  # for every learner that has these settings
    rounds: int
    clients: tuple[int, ...]  # numbers of clients of the second question
    published: dict[str, float]  # results in the chapter's text on its own data
    stands_for: str
    learning_rates: tuple[float, ...] = (
        0.02,
        0.05,
        0.1,
        0.3,
        1.0,
    )  # as a learner takes them
    only_named: bool = False  # whether to run only if --case names it


class Entry(NamedTuple):
    """A row: a learner, its settings and the kind of the method."""

    name: str
    learner: str
    kind: str  # traditional, federated, personal, noisy
    settings: dict[str, Any]
    tuned_as: str  # entry whose learning rate it uses
    scale: float = 1.0  # factor on the application's learning rates
    tuned: str = "learning_rate"  # setting that is tuned
    last_fit: int = 0  # steps of local fine-tuning after training


def application(name, dataset, stands_for, **given) -> Application:
    """Returns an ``Application`` with common defaults."""
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
    # Needs a GPU and a download.
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
    """Returns an ``Entry`` with common defaults."""
    return Entry(name, learner, kind, settings, tuned_as or name)


def noisy(name, learner, epsilon=EPSILON, tuned_as=None, **settings) -> Entry:
    """Returns an entry whose clients send noisy messages."""
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
        # Its learning rate applies to masks, whose gradients are small.
        entry("FedMask", "fedmask")._replace(scale=2000.0),
        entry("FedDL", "feddl"),
        entry("ClusterFL", "clusterfl"),
        entry("Per-FedAvg", "per_fedavg"),
        entry("Ditto", "ditto"),
        entry("pFedMe", "pfedme"),
        entry("Atlas, no noise", "atlas", epsilon=0.0),
        # Clients of the other entries predict with the trained model.
        entry(
            *("Atlas, no noise, no last fit", "atlas"),
            tuned_as="Atlas, no noise",
            epsilon=0.0,
            finetune_steps=0,
        ),
        # Other learners may fine-tune locally as well as Atlas.
        *(
            entry(f"{name}, last fit", learner, kind, tuned_as=name)._replace(
                last_fit=LAST_FIT
            )
            for name, learner, kind in (
                ("FedAvg", "fedavg", "federated"),
                ("FedPer", "fedper", "personal"),
            )
        ),
        # Masks may move faster without noise; with noise, they would follow it.
        entry(
            *("Atlas, no noise, fast masks, no last fit", "atlas"),
            tuned_as="Atlas, no noise",
            epsilon=0.0,
            finetune_steps=0,
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
        # With client-level noise the server's learning rate has to be small.
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
# Entries whose learning rate depends on the noise in the aggregate.
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
