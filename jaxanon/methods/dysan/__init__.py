"""DySan, its variants and its online model selection."""
