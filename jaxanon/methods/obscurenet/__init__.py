"""ObscureNet and its baselines, attribute-specific and conditional autoencoders."""
