"""DySan networks that compile fast."""

SMALL = {
    "filters": (4, 6),
    "hidden_sizes": (16, 8),
    "predictor_filters": (8,),
    "discriminator_filters": 6,
    "classifier_hidden_sizes": 8,
    "batch_size": 48,
}
