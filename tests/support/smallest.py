"""The smallest settings of every method and learner, for contract tests."""

from small_dysan import SMALL as DYSAN

_BLINDER = {"hidden_sizes": (4,), "latent_dim": 2, "discriminator_hidden_sizes": (3,)}
_GAN = {"widths": (8,), "latent_dim": 2, "batch_size": 8}
_DIFFUSION = {"widths": (4,), "heads": 1, "batch_size": 8, "num_train_timesteps": 4}
_DIFFUSION |= {"num_inference_steps": 2}
_READERS = {"classifier_filters": 2, "classifier_hidden_sizes": (4,), "batch_size": 8}
_REPLACER = {
    "replacer_filters": (2, 2),
    "replacer_hidden_sizes": (4, 4),
    "batch_size": 8,
}
_REPLACER |= {"black": ("a",), "gray": ("b",)}
_DYSAN = DYSAN | {"batch_size": 8}
_CODER = {
    "latent_dim": 2,
    "hidden_sizes": (),
    "batch_size": 8,
    "classifier_batch_size": 8,
}

ANONYMIZERS = {
    "blinder": _BLINDER
    | {"query_size": 2, "extra": 2, "samples_per_class": 4, "discriminator_steps": 1}
    | {"discriminator_rounds": 1},
    "fed_blinder": _BLINDER | {"batch_size": 4, "local_rounds": 1, "batches": 1},
    "kd_blinder": _BLINDER | {"batch_size": 4, "local_rounds": 1, "batches": 1},
    "deeprotect": {"hidden_sizes": (4, 2), "batch_size": 8, "mechanism": "laplace"}
    | {"low": (0.0, 0.0), "high": (20.0, 20.0), "radius": None},
    "dysan": _DYSAN,
    "dysan_gen": _DYSAN | {"pretraining": 1},
    "dysan_msda": _DYSAN,
    "olympus": _DYSAN,
    "cgan": _GAN,
    "occupancy_gan": _GAN | {"classes_to_hide": ("b",)},
    "timegan": {"features": (3, 2), "batch_size": 8, "embedding": 1, "supervising": 1}
    | {"joint": 1},
    "cloak": _DIFFUSION
    | {"autoencoder_widths": (4,), "channels": 2, "latent_dim": 2, "projection": 2}
    | {"pretraining": 1},
    "privdiffuser": _DIFFUSION
    | {"latent_dim": 2, "law_hidden_sizes": (3,), "pretraining": 1},
    "msda": _READERS | {"filters": 2, "latent_hidden_sizes": (4, 3)},
    "aae": _READERS | {"filters": 2, "pretraining": 1},
    "gen": {
        "filters": (2, 2, 2),
        "estimator_hidden_sizes": 4,
        "hidden_sizes": (4,),
        "batch_size": 8,
    }
    | {"pretraining": 1},
    "rae": _REPLACER,
    "rae_aae": _REPLACER | _READERS | {"filters": 2, "pretraining": 1, "replacing": 1},
    "attribute_vae": _CODER,
    "general_vae": _CODER,
    "cvae": _CODER,
    "cae": _CODER,
    "obscurenet": _CODER
    | {"discriminator_hidden_sizes": (3,), "discriminator_steps": 1},
    "orf": {},
    "privatehub": _DIFFUSION
    | {"classifier_filters": (4,), "classifier_features": 2, "pretraining": 1},
}

_LEARNER = {"model": "mlp", "hidden_sizes": (4,), "local_steps": 1, "batch_size": 4}
_BUDGET = {"max_rounds": 3}
_OWN = {
    **{name: {"shared_layers": 1} for name in ("fedper", "fedrep")},
    **{name: {"max_examples": 64} | _BUDGET for name in ("atlas", "fedsgd_ldp")},
    **{name: _BUDGET for name in ("dp_fedavg", "ldp_fl")},
    "clusterfl": {"clusters": 2, "probe": 4},
    "centralized_clustering": {"clusters": 2, "alone": 1},
}
LEARNERS = {
    name: _LEARNER | _OWN.get(name, {})
    for name in (
        *("atlas", "centralized", "centralized_clustering", "clusterfl", "ditto"),
        *("dp_fedavg", "fedavg", "feddl", "fedmask", "fedper", "fedprox", "fedrep"),
        *("fedsgd_ldp", "ldp_fl", "localized", "per_fedavg", "pfedme", "scaffold"),
    )
}
