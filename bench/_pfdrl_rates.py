"""A step size for a forecaster, chosen on days that teach."""

import _pfdrl_runs as runs
import _pfdrl_streets as streets

LAST = 5  # One in so many of the days that teach, the last of them, chooses.


def chosen(place, config, hyper, seed, rates) -> dict:
    """The step size with the lowest MASE on the last fifth of the days that teach.

    Half of the homes learn the days before, at every step size; no held-out day is
    looked at. The run itself then learns all days at the best.
    """
    half = streets.some(place, slice(-(-place.homes // 2)))
    last = max(1, round(place.train_days / LAST))
    street, found = streets.street(half), {}
    for rate in rates:
        run = runs.Run(config, street, seed, hyper | {"fit_rate": rate})
        run.live(place.train_days - last)
        tested = run.held_out(place.train_days - last, last)
        found[rate] = runs.forecasts(tested)["mase"]
    best = min(found, key=found.get)
    return {"fit_rate": best, "mase_by_rate": {f"{r:g}": x for r, x in found.items()}}
