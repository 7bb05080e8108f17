"""Speed of a neighborhood, and of deep Q-learning compared with other libraries."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

from harness import rivals, timing
from harness.comparison import speed_row
from jaxanon import energy
from jaxanon.models.predictors import HIDDEN, q_network
from pfdrl import homes as bench_homes
from pfdrl import jobs as work
from pfdrl import plain_dqn as plain
from pfdrl import runs

HOMES, DAYS = 200, 30
LIMIT_S = 1200  # After it the run stops at the end of a day.
EPISODE = 60
AGENTS, STEPS = 32, 1000  # For ours and the plain loop.


def rows(smoke, environments=None) -> list[dict]:
    """Returns rows of a whole neighborhood, then of steps per second."""
    return [*neighborhood_rows(smoke), *step_rows(smoke, environments)]


def neighborhood_rows(smoke):
    """Times training and sharing of 200 homes with six devices for 30 days.

    Uses the default settings of PFDRL. The run trains on all days that start within
    ``LIMIT_S``; it is tested on one more day, which is not timed.
    """
    homes, days = (2, 1) if smoke else (HOMES, DAYS)
    made = bench_homes.place("simulated", 0, homes=homes, days=days, test_days=1)
    neighborhood = bench_homes.neighborhood(made)
    forecast = energy.ForecastConfig(**(work.SMOKE if smoke else {}))
    hidden = (8,) if smoke else HIDDEN
    config = energy.PFDRLConfig(forecast=forecast, hidden_sizes=hidden)
    run = runs.Run(config, neighborhood, 0, {"alpha": 1} if smoke else {})
    start, lived, took = time.perf_counter(), 0, 0.0
    # The first day includes compilation; all days share a program.
    while lived < days and took < LIMIT_S:
        run.train(1)
        lived, took = lived + 1, time.perf_counter() - start
    tested = run.test_days(days, 1)
    found = runs.shares(tested) | runs.forecasts(tested)
    number = neighborhood.power.shape[0]
    what = (
        f"{homes} homes x 6 devices x {lived} days, {os.cpu_count()} cores; "
        f"forecaster_steps {config.forecaster_steps}, "
        f"forecaster_batch_size {config.forecaster_batch_size}, "
        f"{config.slot_min // config.dqn.num_envs} learning steps of "
        f"{config.dqn.batch_size} an hour of the Q-network"
    )
    hours = number * runs.SLOTS * lived
    asked = "<= 600" if (homes, lived) == (HOMES, DAYS) else ""
    called = f"{lived} days of a neighborhood, including compilation"
    test_days = f"held-out day, {lived} days learned"
    figures = [
        row(called, took, "s", asked, what),
        row("an hour of a device", 1e3 * took / hours, "ms", "", what),
    ]
    if lived < days:
        told = f"extrapolated from {lived} days"
        figures.append(row(f"{days} days", took * days / lived, "s", "<= 600", told))
    for which in ("saved", "switched_off", "optimal"):
        told = which.replace("switched_off", "switched off in use")
        figures.append(row(told, 100 * found[which], "%", "", test_days))
    return [*figures, row("MASE", found["mase"], "", "", test_days)]


def step_rows(smoke, environments):
    """Returns environment steps per second and core.

    An agent trains on a batch of 32 after each step of all its environments. The other
    library runs on one core.
    """
    series, cores = some_series(), os.cpu_count() or 1
    agents, steps, hidden = (2, 40, (8,)) if smoke else (AGENTS, STEPS, HIDDEN)
    what = f"{len(hidden)} x {hidden[0]}, {agents} agents on {cores} cores, per core"
    beside = energy.PFDRLConfig().dqn.num_envs
    per_core = lambda run: _rate(run, series, agents, steps) / cores
    ours, simple = per_core(_ours(hidden, steps)), per_core(plain.loop(hidden, steps))
    # The same number of environment steps, vectorized.
    fast = per_core(_ours(hidden, steps // beside, beside))
    one = "one environment, a batch of 32 learned after each step"
    more = f"{beside} environments, a batch of 32 learned after a step of all"
    found = [
        row("energy.dqn, steps of a core", ours, "1/s", "", f"{one}; {what}"),
        row("a plain loop after PureJaxRL", simple, "1/s", "", f"{one}; {what}"),
        row("energy.dqn over the plain loop", ours / simple, "x", ">= 1", one),
        row(f"energy.dqn, steps of a core, {beside}", fast, "1/s", "", more),
    ]
    name, rates = "Stable-Baselines3", {}
    for envs, mine, equal in ((1, ours, one), (beside, fast, more)):
        theirs = _stable_baselines(environments, series, smoke, envs)
        if theirs is None:
            continue
        rates[envs] = theirs
        found.append(row(f"{name}, steps of a core, {envs}", theirs, "1/s", "", equal))
        told = f"equal work, both of one core: {equal}"
        over = f"energy.dqn over {name}, {envs}"
        found.append(row(over, mine / theirs, "x", ">= 50", told))
    if 1 in rates:
        told = (
            f"unequal work, both of one core: ours learns after a step of all of its "
            f"{beside} environments, its loop after every step of its one"
        )
        over = f"energy.dqn with {beside} over {name} with 1"
        found.append(row(over, fast / rates[1], "x", ">= 50", told))
    return found


def some_series() -> energy.Series:
    """Returns three days of a television, with the load an hour before as forecast."""
    load = energy.households(jax.random.key(0), 1, 3, energy.APPLIANCES[:1]).power
    levels = energy.find_levels(np.asarray(load))
    levels = energy.Levels(*(jnp.asarray(level[0, 0]) for level in levels))
    return energy.Series(jnp.roll(load[0, :, 0], EPISODE), load[0, :, 0], levels)


def _ours(hidden, steps, num_envs=1):
    agent = energy.dqn(
        energy.environment(EPISODE),
        q_network(2, 3, hidden),
        energy.DQNConfig(num_envs=num_envs),
    )

    def run(key, series):
        state = agent.init(key, series)
        one = lambda state, _: agent.update(key, state, series)
        return jax.lax.scan(one, state, length=steps)[1]["reward"]

    return run


def _rate(run, series, agents, steps):
    """Returns steps of all agents per second, with one sequential program per core."""
    all_ = jax.jit(lambda keys: jax.lax.map(lambda key: run(key, series), keys))
    cores = os.cpu_count() or 1
    own = -(-agents // cores)
    keys = jax.random.split(jax.random.key(0), (cores, own))
    with concurrent.futures.ThreadPoolExecutor(cores) as threads:
        one = lambda keys: jax.block_until_ready(all_(keys))
        all_cores = lambda keys: [*threads.map(one, keys)]
        return cores * own * steps / timing.timed(all_cores, keys, repeats=3).seconds


def _stable_baselines(environments, series, smoke, envs):
    """Returns the rate of Stable-Baselines3, or None if not installed."""
    python = rivals.python("sb3", environments)
    if python is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, out = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.json")
        np.savez(given, **series.levels._asdict(), **_arrays(series))
        steps = 300 if smoke else 5000
        steps = steps * (1 if envs == 1 else 4)
        words = (given, out, steps, envs)
        call = rivals.call("rivals.stable_baselines", *words, python=python)
        subprocess.run(call, check=True)
        return json.loads(out.read_text())["steps_per_second"]


def _arrays(series):
    return {"load": series.load, "forecast": series.forecast}


def row(name, value, unit, asked, what):
    """Returns one row of the table."""
    return speed_row(name, value, unit, asked, what) | {"shapes": what}
