"""DEEProtect's repository of inferences from sensors."""

from collections.abc import Iterable
from typing import NamedTuple


class Inference(NamedTuple):
    """Something that a program can infer from sensors; may be useful or sensitive.

    ``attributes`` are the names that jaxanon's data sets use for its label; empty if no
    data set has one.
    """

    name: str
    tells: str
    sensors: tuple[str, ...]
    attributes: tuple[str, ...] = ()


# Table I of Liu, Chakraborty and Mittal, DEEProtect, 2017. The extracted text of the
# table loses the columns; each work is listed with the sensors that it recorded.
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
    """Returns the inference with this name.

    Args:
      name: name in the repository, in any case; hyphens may replace spaces.

    Raises:
      ValueError: if the repository has no such inference.

    Example:
      >>> get("Device-placement").sensors
      ('accelerometer',)
    """
    by_name = {_normalize(each.name): each for each in REPOSITORY}
    if _normalize(name) not in by_name:
        raise ValueError(
            f"name must be one of {[each.name for each in REPOSITORY]}, got {name!r}."
        )
    return by_name[_normalize(name)]


def attribute(name: str, known: Iterable[str]) -> str:
    """Returns the attribute that a name stands for.

    Args:
      name: name of an attribute, or of an inference as for ``get``.
      known: attributes of the data.

    Returns:
      One of ``known``: the attribute itself, or the one that labels the inference.

    Raises:
      ValueError: if the name is neither, or no attribute of the data labels the
        inference.

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
        inference = get(name)
    except ValueError as error:
        from jaxanon.kernels.checks import did_you_mean  # Imports JAX.

        raise ValueError(
            f"{name!r} is neither an attribute of the data ({sorted(known)}) nor an "
            "inference; `jaxanon list-inferences` lists the inferences."
            f"{did_you_mean(name, known)}"
        ) from error
    labels = [each for each in inference.attributes if each in known]
    if not labels:
        raise ValueError(
            f"the data have no labels of {inference.name!r}, got the attributes "
            f"{sorted(known)}; add labels, or use other data."
        )
    return labels[0]


def _normalize(name):
    return name.lower().replace("-", " ").strip()
