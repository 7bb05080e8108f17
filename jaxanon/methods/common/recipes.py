"""Recipes of the anonymizers: named settings with a stated purpose.

Settings not in a recipe keep the defaults of the method's config.
"""

from jaxanon.core.registry import RECOMMENDED, Recipe


def _recipes(recommended, paper, fast, official=None) -> dict[str, Recipe]:
    recipes = {RECOMMENDED: recommended, "paper": paper, "official": official}
    return {name: one for name, one in recipes.items() if one} | {"fast": fast}


def _same(what: str, epochs: int | None = None) -> Recipe:
    return Recipe(f"The defaults: {what}", epochs=epochs)


def _fast(epochs: int, **settings) -> Recipe:
    return Recipe(
        "A quick run with lower utility and weaker protection.", settings, epochs
    )


BLINDER_PAPER = {
    "hidden_sizes": (512, 512, 256, 128),
    "guided": False,
    "alpha": 0.9,
    "beta": 2.0,
    "gamma": 0.2,
    "query_size": 15,
    "extra": 32,
    "samples_per_class": 600,
    "client_fraction": 0.4,
    "inner_learning_rate": 1e-4,
    "second_order": True,
    "ema_decay": 0.0,
    "discriminator_hidden_sizes": (128, 128),
    "discriminator_rounds": 0,
    "discriminator_steps": 5,
    "shadows": True,
    "utility": 20.0,
    "output_discriminator_weight": 20.0,
    "anonymization": "stochastic",
    "flip_probability": 0.5,
}
BLINDER = _recipes(
    Recipe(
        "Grades the windows that leave the device, and scales the training to the size "
        "of the data."
    ),
    Recipe(
        "The paper's weights, cohorts and discriminators, with cross-entropy on "
        "logits; the server uses Adam, as in the authors' program.",
        BLINDER_PAPER,
        epochs=30,
    ),
    Recipe(
        "A run in a quarter of the time, with lower utility and weaker protection.",
        epochs=5,
    ),
    Recipe(
        "The authors' program: its loss, which passes probabilities as logits, its "
        "initial weights, and the same batches in each epoch.",
        BLINDER_PAPER
        | {"variant": "official", "initialization": "official", "fresh_batches": False},
        epochs=30,
    ),
)
_BASELINE = "the paper's weights, and Blinder's settings where it gives none."
FED_BLINDER = _recipes(
    _same(_BASELINE),
    _same(_BASELINE),
    _fast(4),
    Recipe(
        "Blinder's official loss and initial weights.",
        {"variant": "official", "initialization": "official"},
    ),
)
KD_BLINDER = FED_BLINDER

OBSCURENET = _recipes(
    Recipe("The corrected loss; on MotionSense, about 2,500 rounds.", epochs=47),
    Recipe("The paper's loss and epochs.", epochs=200),
    _fast(10),
    Recipe(
        "The authors' program: its scale of the loss, and discriminator gradients that "
        "accumulate over steps.",
        {"variant": "official", "accumulate": True},
        epochs=200,
    ),
)
ATTRIBUTE_VAE = _recipes(
    Recipe("The corrected loss; on MotionSense, about 2,500 rounds.", epochs=47),
    Recipe("The paper's weights and epochs.", epochs=300),
    _fast(10),
    Recipe(
        "The authors' program for MotionSense: no classification layer, and class "
        "means of the last public class.",
        {"variant": "official", "alpha": 0.0, "beta": 0.1, "means_of": "last"},
        epochs=300,
    ),
)
GENERAL_VAE = _recipes(
    _same("the corrected loss."),
    _same("the weights of the authors' program for MobiAct.", 20),
    _fast(2),
    Recipe("The authors' program for MobiAct.", {"variant": "official"}),
)
CVAE = _recipes(
    Recipe("The corrected loss; on MotionSense, about 2,500 rounds.", epochs=47),
    Recipe("The paper's weights and epochs.", epochs=200),
    _fast(10),
    Recipe("The authors' scale of the loss.", {"variant": "official"}, epochs=200),
)
CAE = _recipes(
    Recipe("The defaults; on MotionSense, about 2,500 rounds.", epochs=47),
    Recipe("The paper's epochs.", epochs=200),
    _fast(10),
)

_DYSAN_OFFICIAL = {
    "inner_steps": 50,
    "early_stop": True,
    "errors": "official",
    "goal": "published",
    "optimization": "vector",
    "standardized": False,
}
_DYSAN_PROGRAM = (
    "The authors' program: 50 inner steps, errors by private class, and a separate "
    "step for each loss term, on windows in physical units."
)
DYSAN = _recipes(
    Recipe("The defaults: discriminators are to guess the private class.", epochs=60),
    Recipe("Equation 1 as printed.", {"goal": "published"}, epochs=60),
    _fast(5),
    Recipe(_DYSAN_PROGRAM, _DYSAN_OFFICIAL),
)
DYSAN_GEN = OLYMPUS = DYSAN_MSDA = _recipes(
    Recipe("The defaults, for as many epochs as DySan.", epochs=60),
    Recipe("DySan's version, with the goal as printed.", {"goal": "published"}, 60),
    _fast(5),
    Recipe(_DYSAN_PROGRAM, _DYSAN_OFFICIAL),
)

_OFFICIAL = "the weights of the authors' program."
GEN = _recipes(
    _same(_OFFICIAL),
    _same(_OFFICIAL),
    _fast(2, pretraining=1),
)
MSDA = _recipes(
    Recipe("The defaults: all networks learn in each round.", epochs=5),
    _same("the paper's loss with the weights of the authors' program.", 20),
    _fast(2),
    Recipe(
        "The authors' program: trains the networks in alternating phases, with a "
        "confusion loss that is lowest when the true class is excluded.",
        {"variant": "official", "warm_up": 32, "turn": 24},
        epochs=224,
    ),
)
AAE = _recipes(
    Recipe("The defaults, with classifiers frozen after 5 epochs.", epochs=12),
    _same(_OFFICIAL, 20),
    _fast(3, pretraining=1),
    Recipe("The authors' pretraining of 50 epochs.", {"pretraining": 50}, epochs=100),
)
RAE = _recipes(
    Recipe("The defaults, with new neutral windows in each batch.", epochs=8),
    Recipe("The paper's fixed replacements.", {"targets": "kept"}),
    _fast(2),
)
RAE_AAE = _recipes(
    Recipe("The defaults, with new neutral windows in each batch.", epochs=18),
    Recipe("The paper's fixed replacements.", {"targets": "kept"}, epochs=18),
    _fast(5, replacing=2, pretraining=1),
)
_UNPUBLISHED = "the paper gives no settings."
ORF = _recipes(
    Recipe("The defaults; collects statistics only.", epochs=1),
    _same(_UNPUBLISHED, 1),
    _fast(1),
)
CGAN = OCCUPANCY_GAN_BASE = _recipes(
    _same("chosen for jaxanon."), _same(_UNPUBLISHED), _fast(4)
)
OCCUPANCY_GAN = OCCUPANCY_GAN_BASE | {
    "paper": Recipe(
        "The paper's unbounded loss for the classes to hide.",
        {"privacy_loss": "paper"},
    )
}
TIMEGAN = _recipes(
    _same("chosen for jaxanon, in three phases.", 150),
    _same(_UNPUBLISHED, 150),
    _fast(12, embedding=4, supervising=4),
)
PRIVDIFFUSER = _recipes(_same("chosen for jaxanon."), _same(_UNPUBLISHED), _fast(12))
CLOAK = _recipes(
    _same("chosen for jaxanon."),
    Recipe("The paper's temperature.", {"temperature": 0.1}),
    _fast(12),
)
PRIVATEHUB = _recipes(
    _same("noises windows and denoises them under their predicted public class."),
    Recipe(
        "The paper's betas, triplet loss and patience, and fine-tuning without replay.",
        {"schedule": "paper", "triplet": "paper", "patience": 30, "replay": 0.0},
        epochs=200,
    ),
    _fast(3),
) | {
    "regenerate": Recipe(
        "Hides the most: generates each window from its predicted public class only.",
        {"strength": 1.0, "guidance_scale": 5.0, "negative_guidance_scale": 0.0},
        epochs=12,
    )
}
DEEPROTECT = _recipes(
    _same("linear features and the smallest noise that gives a guarantee."),
    Recipe(
        "The paper's sigmoid layers, greedy training and Laplace noise.",
        {
            "curve": "sigmoid",
            "training": "greedy",
            "inference": "ridge",
            "optimizer": "sgd",
            "learning_rate": 0.1,
            "mechanism": "laplace",
            "sensitivity": "published",
            "radius": None,
        },
        epochs=30,
    ),
    _fast(2),
)
