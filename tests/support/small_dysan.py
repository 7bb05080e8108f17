"""Networks of DySan that are quick to compile."""

SMALL = {
    "filters": (4, 6),
    "hidden": (16, 8),
    "predictor_filters": (8,),
    "discriminator_filters": 6,
    "judge_hidden": 8,
    "batch": 48,
}
