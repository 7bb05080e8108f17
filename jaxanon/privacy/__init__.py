"""What releases add up to, and mechanisms that know their sensitivity."""

from jaxanon.privacy.composition import parallel, per_hour, sequential
from jaxanon.privacy.expected_error import feature_error, raw_error, rebuilt_error

__all__ = [
    "feature_error",
    "parallel",
    "per_hour",
    "raw_error",
    "rebuilt_error",
    "sequential",
]
