"""What releases add up to, and mechanisms that know their sensitivity."""

from jaxanon.privacy.composition import parallel, per_hour, sequential

__all__ = ["parallel", "per_hour", "sequential"]
