"""A fake ``evaluate`` in place of batched evaluations."""


def one_by_one(fake):
    """Replaces ``evaluation.evaluate_each`` by ``fake(run, data, ...)`` per run."""

    def evaluate_each(runs, data, seeds, **options):
        pairs = zip(runs, seeds, strict=True)
        return [fake(run, data, seed=seed, **options) for run, seed in pairs]

    return evaluate_each
