"""A made-up ``evaluate``, in the place of evaluations side by side."""


def one_by_one(fake):
    """``evaluation.evaluate_each`` by ``fake(run, data, *, seed, ...)`` of each."""

    def evaluate_each(runs, data, seeds, **options):
        pairs = zip(runs, seeds, strict=True)
        return [fake(run, data, seed=seed, **options) for run, seed in pairs]

    return evaluate_each
