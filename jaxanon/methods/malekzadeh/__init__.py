"""Anonymizers of Malekzadeh et al.: MSDA, AAE, RAE and GEN."""
