"""Handmade models for every test of the runtime."""

import handmade as _MODELS
import pytest


@pytest.fixture(scope="session")
def models():
    """Returns the module ``handmade``, which writes model files and stand-ins."""
    return _MODELS
