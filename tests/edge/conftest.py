"""Models made by hand, for every test of the runtime."""

import handmade as _MODELS
import pytest


@pytest.fixture(scope="session")
def models():
    """The module ``handmade``: functions that write model files, and their like."""
    return _MODELS
