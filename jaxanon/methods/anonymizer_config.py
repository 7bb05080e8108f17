"""The settings that the versions of the anonymizing autoencoder share."""

import dataclasses

from jaxanon.kernels.setting_checks import at_least, finite, of_kinds


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnonymizerConfig:
    """Settings of an autoencoder that readers of its windows regularise.

    Those of the released programs unless said otherwise. Weights and step sizes are
    defaults here and arrays in the state, which a sweep may vary without compiling
    anew.

    Raises:
      ValueError: for a setting out of its range.
      TypeError: for a setting that should be a whole number, or any, and is none.
    """

    distortion: float = 1.0
    """weight of the mean squared change of standardised windows"""
    confusion: float = 1.0
    """weight of each reader of a private attribute, to be confused"""
    utility: float = 2.0
    """weight of the public attribute's cross-entropy"""
    decay: float = 1e-3
    """weight of the squares of all kernels with more than one output"""
    step_size: float = 1e-3
    """step size of the autoencoder's Adam"""
    reader_step_size: float = 1e-3
    """step size of the readers'"""
    batch: int = 128
    """windows per step"""
    filters: int = 64
    """filters of the autoencoder's convolutions"""
    reader_filters: int = 32
    """filters of the readers' convolutions"""
    reader_hidden: tuple[int, ...] = (128, 32)
    """widths of the dense layers of those that read windows"""

    def __post_init__(self):
        of_kinds(self)
        names = ("batch", "filters", "reader_filters", "reader_hidden")
        at_least(1, **{name: getattr(self, name) for name in names})
        weights = ("distortion", "confusion", "utility", "decay")
        finite(zero=True, **{name: getattr(self, name) for name in weights})
        finite(
            zero=False, step_size=self.step_size, reader_step_size=self.reader_step_size
        )


HYPER = (
    *("distortion", "confusion", "utility", "decay"),
    *("step_size", "reader_step_size"),
)


def hyper(config: AnonymizerConfig, *more: str) -> dict[str, float]:
    """The hyper-parameters of a config, with ``more`` fields of its own."""
    return {name: getattr(config, name) for name in (*HYPER, *more)}
