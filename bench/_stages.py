"""What every row of the table of anonymizers is tried by, and in which order."""

STAGES = {
    "seeds": ("mlp", "forest", "stream"),
    "attackers": ("cnn", "lstm", "boosting", "logistic", "tree", "svm", "intrusive"),
    "attacks": (
        *("mlp", "forest", "intrusive", "per-class", "pairs"),
        *("self-training", "released"),
    ),
}
FURTHER = ("attackers", "attacks")  # Stages that try the first seed and form alone.
SMOKE = {
    "seeds": ("forest", "stream"),
    "attackers": ("tree",),
    "attacks": ("forest", "intrusive", "pairs"),
}


def passes(seeds, first=0, *, further):
    """``(stage, seed)`` in the order in which they are gone through.

    Example:
      >>> passes(2, further=True)
      [('seeds', 0), ('attackers', 0), ('attacks', 0), ('seeds', 1)]
      >>> passes(2, 1, further=True)
      [('seeds', 1), ('seeds', 2)]
    """
    found = [("seeds", seed) for seed in range(first, first + seeds)]
    if further and not first:
        found[1:1] = [(stage, 0) for stage in FURTHER]
    return found
