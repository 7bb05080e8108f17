"""What papers and released weights say of the rows, and how a row compares."""

from typing import NamedTuple

ACTIVITY, PRIVATE = 2.0, 5.0  # Points within which a row without a band agrees.
CHANCE = 50.0  # All that is published is of gender.


class Published(NamedTuple):
    """Accuracies in percent, of classifiers trained on raw windows."""

    activity: float
    private: float
    source: str
    least_activity: float | None = None  # of a row that agrees
    private_band: tuple[float, float] | None = None
    inverted: bool = False  # The lower the private one the better.
    hides: bool = True  # What hides nothing can't do so better.
    reason: str = ""  # why a row that differs does, where it is known


WEIGHTS = "released weights, run on these windows"
PAPER = "Hajihassani et al. 2021, table 2"
BLINDER = "Yang and Ardakanian 2023, on windows without standing"
DYSAN = "Boutet et al. 2021"
GEN = "notebook of Malekzadeh et al. 2018"
GRADED = (
    "The published judge is GEN's own estimator, which the guardian learned to please; "
    "ours are judges that it never met."
)
RETRAINED = "DySan's judges are trained anew on sanitized windows, ours on raw ones"
PUBLISHED = {
    ("MotionSense", "raw windows", ""): Published(
        96.94, 93.33, WEIGHTS, 95.4, (91.8, 95.0), hides=False
    ),
    ("MotionSense", "ObscureNet", "flip"): Published(
        95.65, 17.12, WEIGHTS, 94.5, (0, 25), True
    ),
    ("MotionSense", "ObscureNet", "random class"): Published(
        95.96, 54.41, WEIGHTS, 94.5, (50, 57)
    ),
    ("MotionSense", "attribute-specific VAEs", "flip"): Published(
        96.03, 17.86, PAPER, 94.5, (0, 30), True
    ),
    (
        "MotionSense",
        "attribute-specific VAEs, no classification layer",
        "flip",
    ): Published(94.28, 52.79, WEIGHTS, 92.5, (45, 62)),
    ("MotionSense", "CVAE", "flip"): Published(
        95.12, 61.50, WEIGHTS, 93.0, (55, 70), True
    ),
    ("MotionSense", "CAE", "flip"): Published(
        96.32, 76.48, WEIGHTS, 93.0, (70, 82), True
    ),
    ("MotionSense", "Blinder", ""): Published(93.61, 57.04, BLINDER, 91.5, (0, 60)),
    ("MotionSense", "Blinder, guided", ""): Published(
        93.61, 57.04, BLINDER, 91.5, (0, 60)
    ),
    ("MotionSense", "FedBlinder", ""): Published(83.58, 60.06, BLINDER),
    ("MotionSense", "KD-Blinder", ""): Published(82.89, 77.50, BLINDER),
    ("MotionSense", "AAE", ""): Published(92.84, 78.23, BLINDER),
    ("MotionSense, raw axes", "raw windows", ""): Published(
        97.0, 98.5, DYSAN, hides=False
    ),
    ("MotionSense, raw axes", "DySan", ""): Published(
        92.0, 51.0, DYSAN, reason=f"{RETRAINED}."
    ),
    ("MotionSense, raw axes", "GEN, as DySan has it", ""): Published(
        95.0,
        96.0,
        DYSAN,
        reason=f"{RETRAINED}, which do not know windows that nothing holds near them.",
    ),
    ("MotionSense, seconds of 12 channels", "raw windows", ""): Published(
        95.1, 95.2, GEN, hides=False
    ),
    ("MotionSense, seconds of 12 channels", "GEN", ""): Published(
        93.9, 49.6, GEN, reason=GRADED
    ),
}


def verdict(published: Published | None, activity: float, private: float) -> str:
    """``reproduced``, ``better``, ``worse``, or nothing where nothing is published.

    Args:
      published: of ``PUBLISHED``.
      activity, private: what was measured, in percent.

    Example:
      >>> told = Published(90.0, 60.0, "a paper")
      >>> [verdict(told, *pair) for pair in ((89, 57), (89, 54), (80, 60))]
      ['reproduced', 'better', 'worse']
    """
    if published is None:
        return ""
    least = published.least_activity
    least = published.activity - ACTIVITY if least is None else least
    low, high = published.private_band or (
        published.private - PRIVATE,
        published.private + PRIVATE,
    )
    if activity < least:
        return "worse"
    within = low <= private <= high
    if not published.hides:
        return "reproduced" if private >= low else "worse"
    if published.inverted:
        return "better" if private < low else "reproduced" if within else "worse"
    nearer = abs(published.private - CHANCE) - abs(private - CHANCE)
    if nearer > PRIVATE or (activity > published.activity + ACTIVITY and within):
        return "better"
    return "reproduced" if within or nearer >= 0 else "worse"
