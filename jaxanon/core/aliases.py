"""Names that version 0.1 wrote into files, read as the names of today."""

import re
from collections.abc import Container, Mapping
from typing import Any

METHODS = {
    "dpfedavg": "dp_fedavg",
    "ldpfl": "ldp_fl",
    "perfedavg": "per_fedavg",
}

# A name of 0.1, and those that it has now; which one depends on the method's config.
SETTINGS = {
    "adaptation_step_size": ("adaptation_learning_rate",),
    "adversary_hidden": ("discriminator_hidden_sizes",),
    "adversary_rounds": ("discriminator_rounds",),
    "adversary_step_size": ("discriminator_learning_rate",),
    "adversary_steps": ("discriminator_steps",),
    "also": ("extra_public",),
    "autoencoder_step_size": ("autoencoder_learning_rate",),
    "averaging": ("ema_decay",),
    "batch": ("batch_size",),
    "claim": ("privacy_unit",),
    "classifier_step_size": ("classifier_learning_rate",),
    "cohort": ("client_fraction",),
    "count_share": ("count_fraction",),
    "critic": ("output_discriminator_weight",),
    "critic_step_size": ("discriminator_learning_rate",),
    "decay": ("weight_decay",),
    "double": ("double_dqn",),
    "ema": ("ema_decay",),
    "epsilon": ("exploration_epsilon",),
    "estimator_hidden": ("estimator_hidden_sizes",),
    "fine_step_size": ("finetune_learning_rate",),
    "fit_batch": ("forecaster_batch_size",),
    "fit_rate": ("forecaster_learning_rate",),
    "fit_steps": ("forecaster_steps",),
    "flip": ("flip_probability",),
    "flip_to": ("flip_direction",),
    "forgetting": ("condition_dropout",),
    "form": ("variant",),
    "guarantee": ("privacy_unit",),
    "guidance": ("guidance_scale",),
    "held_out": ("test_days", "validation_fraction"),
    "hidden": ("hidden_sizes",),
    "hide": ("classes_to_hide",),
    "initialisation": ("initialization",),
    "inner_step_size": ("inner_learning_rate",),
    "judge_batch": ("classifier_batch_size",),
    "judge_hidden": ("classifier_hidden_sizes",),
    "judge_step_size": ("classifier_learning_rate",),
    "late": ("delay_probability",),
    "latent": ("latent_dim",),
    "latent_hidden": ("latent_hidden_sizes",),
    "law_hidden": ("law_hidden_sizes",),
    "law_step_size": ("law_learning_rate",),
    "lost": ("drop_probability",),
    "mask_step_size": ("mask_learning_rate",),
    "max_norm": ("clip_norm",),
    "most_layers": ("max_layers",),
    "mu": ("proximal_mu",),
    "negative_guidance": ("negative_guidance_scale",),
    "neighbours": ("k_neighbors",),
    "norm_step_size": ("norm_learning_rate",),
    "num_steps": ("num_train_timesteps",),
    "own_step_size": ("finetune_learning_rate",),
    "own_steps": ("finetune_steps", "personal_steps"),
    "paid_epochs": ("max_private_epochs",),
    "per_class": ("samples_per_class",),
    "prediction": ("prediction_type",),
    "pull": ("proximal_weight",),
    "query": ("query_size",),
    "reach": ("weight_range",),
    "reader_filters": ("classifier_filters",),
    "reader_hidden": ("classifier_hidden_sizes",),
    "reader_step_size": ("classifier_learning_rate", "guidance_encoder_learning_rate"),
    "reading": ("noise_interpretation",),
    "records": ("max_examples",),
    "replacer_decay": ("replacer_weight_decay",),
    "replacer_hidden": ("replacer_hidden_sizes",),
    "replacer_step_size": ("replacer_learning_rate",),
    "rounds": ("max_rounds",),
    "sampling_steps": ("num_inference_steps",),
    "score_share": ("score_fraction",),
    "server_step_size": ("server_learning_rate",),
    "share": ("fraction",),
    "solver": ("sampler",),
    "standardised": ("standardized",),
    "step_size": ("learning_rate",),
    "support": ("support_size",),
    "suspicion": ("hide_threshold",),
    "target_every": ("target_update_interval",),
    "threshold": ("confidence_threshold",),
}

VALUES = {
    ("mechanism", "priv unit"): "privunit",
    ("sampler", "dpm"): "dpmpp_2m",
    ("variant", "plain"): "paper",
    ("variant", "released"): "official",
    **{
        (name, "released"): "official"
        for name in ("errors", "initialization", "preset", "split")
    },
    ("split", "time block"): "time_block",
}


def setting_name(name: str, known: Container[str]) -> str:
    """Returns the name that a setting has now.

    Args:
      name: as a file has it.
      known: settings of the method. A name among them is not changed.

    Example:
      >>> setting_name("step_size", {"learning_rate"}), setting_name("mu", {"mu"})
      ('learning_rate', 'mu')
    """
    if name in known:
        return name
    return next((new for new in SETTINGS.get(name, ()) if new in known), name)


def settings(saved: Mapping[str, Any], known: Container[str]) -> dict[str, Any]:
    """Returns saved settings under the names and values that they have now.

    Args:
      saved: settings as a file has them.
      known: names of the method's settings.

    Example:
      >>> settings({"form": "released", "beta": 2.0}, {"variant", "beta"})
      {'variant': 'official', 'beta': 2.0}
    """
    named = {setting_name(name, known): value for name, value in saved.items()}
    return {name: _value(name, value) for name, value in named.items()}


def _value(name, value):
    return VALUES.get((name, value), value) if isinstance(value, str) else value


def run_config(config: dict, known: Container[str]) -> dict:
    """Returns the content of ``config.json`` under the names of today.

    Args:
      config: content of the file.
      known: names of the method's settings.
    """

    def hyper_leaf(text):
        return re.sub(
            r"^((?:\.\w+)*\.hyper\[')(\w+)",
            lambda found: found[1] + setting_name(found[2], known),
            text,
        )

    data, spec = (
        {name: _value(name, value) for name, value in config[part].items()}
        for part in ("data", "spec")
    )
    return config | {
        "method": METHODS.get(config["method"], config["method"]),
        "settings": settings(config["settings"], known),
        "hyper": settings(config.get("hyper", {}), known),
        "data": data,
        "spec": spec,
        "architecture": [hyper_leaf(text) for text in config["architecture"]],
    }
