"""Builds the config of settings given by name."""

import dataclasses

from jaxanon.kernels.checks import did_you_mean


def configured(config_class, settings):
    """The dataclass of these settings.

    Raises:
      TypeError: for a name that is none of its fields, with those that there are; and
        whatever the class itself refuses.

    Example:
      >>> @dataclasses.dataclass
      ... class Settings:
      ...     latent: int = 25
      >>> configured(Settings, {"latent": 4})
      Settings(latent=4)
      >>> configured(Settings, {"latnt": 4})
      Traceback (most recent call last):
      ...
      TypeError: Settings has no 'latnt'; it has ['latent']. Did you mean 'latent'?
    """
    known = sorted(field.name for field in dataclasses.fields(config_class))
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise TypeError(
            f"{config_class.__name__} has no {', '.join(map(repr, unknown))}; it has "
            f"{known}.{did_you_mean(unknown[0], known)}"
        )
    return config_class(**settings)
