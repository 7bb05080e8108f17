"""DySan, its variants and the online selection of models."""
