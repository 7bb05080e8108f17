"""The autoencoders of Malekzadeh et al. and Guardian-Estimator-Neutralizer."""
