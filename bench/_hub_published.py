"""Table 4.2 of the chapter, as far as it can be read."""

METHODS = (
    *("TimeGAN", "Conditional GAN", "Occupancy-GAN"),
    *("PrivateHub", "raw data"),
)
# Accuracies in percent: of classes to show, then of each class to hide. None: that row
# of the text at hand is damaged.
_TABLE = {
    "Milan": (
        (77.4, 65.3, 69.2, 84.0, 84.0),
        (42.5, 49.8, 51.2, 38.0, 78.0),
        (None, None, None, None, None),
    ),
    "Kyoto1": (
        (68.6, 62.2, 53.9, 77.8, 80.0),
        (42.1, 49.4, 50.2, 36.5, 72.0),
        (44.1, 49.2, 50.0, 38.1, 81.0),
    ),
    "Kyoto2": (
        (76.0, 63.5, 66.3, 84.2, 83.0),
        (41.5, 49.7, 51.0, 28.6, 74.0),
        (43.8, 49.0, 49.5, 39.2, 87.0),
    ),
    "Kyoto3": (
        (68.8, 61.2, 53.3, 72.5, 84.0),
        (41.0, 49.6, 50.7, 23.9, 70.0),
        (43.2, 48.7, 49.9, 30.1, 78.0),
    ),
    "Kyoto4": (
        (76.7, 62.7, 68.3, 84.1, 83.0),
        (41.8, 49.1, 50.8, 37.6, 76.0),
        (43.5, 48.4, 50.3, 34.5, 80.0),
    ),
    "Smart office": (
        (81.2, 72.1, 82.1, 95.3, 95.0),
        (42.1, 54.5, 42.8, 39.6, 93.0),
    ),
}
HIDDEN = ("bath", "leave home")  # Of homes; of the office a Zoom call.
ZOOM = ("Zoom call",)


def figures(name: str, hidden: str) -> tuple:
    """A row of it, of a class of ours to hide, or of those to show (""); () if none.

    Example:
      >>> figures("Kyoto1", ""), figures("Kyoto1", "leave"), figures("Oslo", "")
      ((68.6, 62.2, 53.9, 77.8, 80.0), (44.1, 49.2, 50.0, 38.1, 81.0), ())
    """
    rows = _TABLE.get(name, ())
    at = 0 if not hidden else 2 if hidden == "leave" else 1
    return rows[at] if at < len(rows) else ()


def beside(name: str, method: str) -> tuple[str, str]:
    """What the chapter has of non-private and of private accuracy, in words.

    Example:
      >>> beside("Kyoto1", "PrivateHub")
      ('77.8', 'bath 36.5, leave home 38.1')
    """
    if name not in _TABLE or method not in METHODS:
        return "", ""
    shown, *private = _TABLE[name]
    at = METHODS.index(method)
    names = HIDDEN if len(private) == len(HIDDEN) else ZOOM
    told = [
        f"{what} {'?' if row[at] is None else f'{row[at]:.1f}'}"
        for what, row in zip(names, private, strict=True)
    ]
    return f"{shown[at]:.1f}", ", ".join(told)
