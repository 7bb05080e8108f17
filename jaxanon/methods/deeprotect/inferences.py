"""What sensors are known to tell: the repository of inferences of DEEProtect."""

from collections.abc import Iterable
from typing import NamedTuple


class Inference(NamedTuple):
    """Something that programs read off sensors, useful to some and sensitive to others.

    ``attributes`` are the names under which the data sets here label it; none where no
    data set does.
    """

    name: str
    tells: str
    sensors: tuple[str, ...]
    attributes: tuple[str, ...] = ()


# Table I of Liu, Chakraborty and Mittal, DEEProtect, 2017. Its text does not say in
# which column a work stands; it stands here with the sensors that the work recorded.
REPOSITORY = (
    Inference(
        "activity mode detection",
        "walking, still and the like",
        ("accelerometer",),
        ("activity", "exercise"),
    ),
    Inference(
        "behavior-based authentication",
        "the authorized user or another",
        (
            *("accelerometer", "orientation", "gyroscope", "magnetic field"),
            *("microphone", "camera", "touch screen"),
        ),
        ("subject",),
    ),
    Inference(
        "text entered",
        "letters and digits",
        ("accelerometer", "orientation", "gyroscope"),
    ),
    Inference(
        "speaker identity recognition",
        "who is speaking",
        (
            *("accelerometer", "orientation", "gyroscope", "magnetic field"),
            "microphone",
        ),
    ),
    Inference(
        "speech-to-text translation", "what is said", ("gyroscope", "microphone")
    ),
    Inference("location", "home, work, public", ("accelerometer", "microphone", "GPS")),
    Inference(
        "device placement", "hand, ear, pocket, bag", ("accelerometer",), ("side",)
    ),
    Inference(
        "onscreen taps",
        "where on the screen a program is",
        ("accelerometer", "gyroscope"),
    ),
    Inference("stress", "stressed or not", ("microphone",)),
    Inference("emotion", "happy, sad, fear, anger", ("microphone",)),
    Inference(
        "environment monitor",
        "what a place looks like",
        ("accelerometer", "orientation", "microphone", "camera"),
    ),
)


def get(name: str) -> Inference:
    """The inference of a name.

    Args:
      name: as the repository spells it, hyphens for spaces allowed, in any case.

    Raises:
      ValueError: if there is none such.

    Example:
      >>> get("Device-placement").sensors
      ('accelerometer',)
    """
    found = {_plain(each.name): each for each in REPOSITORY}
    if _plain(name) not in found:
        raise ValueError(
            f"{name!r} is no inference of the repository, which has "
            f"{[each.name for each in REPOSITORY]}."
        )
    return found[_plain(name)]


def attribute(name: str, known: Iterable[str]) -> str:
    """The attribute that a name means: its own, or the one that labels an inference.

    Args:
      name: of an attribute, or of an inference as ``get`` takes it.
      known: attributes of the data.

    Returns:
      One of ``known``.

    Raises:
      ValueError: if it is neither, or no attribute of the data labels the inference.

    Example:
      >>> attribute("behavior-based authentication", ["activity", "subject"])
      'subject'
      >>> attribute("activity", ["activity", "subject"])
      'activity'
    """
    known = list(known)
    if name in known:
        return name
    try:
        found = get(name)
    except ValueError as error:
        from jaxanon.kernels.checks import did_you_mean  # Brings JAX along.

        raise ValueError(
            f"{name!r} is neither an attribute of the data, which has {sorted(known)}, "
            "nor an inference; `jaxanon list-inferences` lists those."
            f"{did_you_mean(name, known)}"
        ) from error
    labels = [each for each in found.attributes if each in known]
    if not labels:
        raise ValueError(
            f"the data have no labels of {found.name!r}: their attributes are "
            f"{sorted(known)}. Label them, or take other data."
        )
    return labels[0]


def _plain(name):
    return name.lower().replace("-", " ").strip()
