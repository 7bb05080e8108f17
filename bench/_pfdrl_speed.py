"""How fast a street lives, and deep Q-learning beside others on one environment."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import tempfile
import time

import _pfdrl_plain as plain
import _pfdrl_rivals as rivals
import _pfdrl_runs as runs
import _pfdrl_streets as streets
import _timing
import jax
import jax.numpy as jnp
import numpy as np

from jaxanon import energy
from jaxanon.models.q_network import HIDDEN, q_network

HOMES, DAYS = 200, 30
FIT_STEPS, FIT_BATCH, ENVS = 1, 16, 60
EPISODE = 60
AGENTS, STEPS = 32, 1000  # Of ours and the plain loop, side by side.


def rows(smoke, environments=None) -> list[dict]:
    """A whole street, then steps of environments per second."""
    return [*street_rows(smoke), *step_rows(smoke, environments)]


def street_rows(smoke):
    """200 homes of six devices for 30 days: they forecast, switch, learn and share.

    All 30 days teach; one more is held out, and not timed.
    """
    homes, days = (2, 1) if smoke else (HOMES, DAYS)
    made = streets.place("simulated", 0, homes=homes, days=days, held_out=1)
    street = streets.street(made)
    forecast = energy.ForecastConfig(**({"features": 4} if smoke else {}))
    config = energy.PFDRLConfig(
        forecast=forecast,
        fit_steps=FIT_STEPS,
        fit_batch=FIT_BATCH,
        dqn=energy.DQNConfig(num_envs=ENVS),
        hidden=(8, 8) if smoke else HIDDEN,
    )
    run = runs.Run(config, street, 0, {"alpha": 1} if smoke else {})
    start = time.perf_counter()
    # Compiled with the first: each day of the same program.
    run.live(1)
    first = time.perf_counter() - start
    start = time.perf_counter()
    for _ in range(days - 1):
        run.live(1)
    rest = time.perf_counter() - start
    tested = run.held_out(days, 1)
    found = runs.shares(tested) | runs.forecasts(tested)
    number = street.power.shape[0]
    what = (
        f"{homes} homes x 6 devices x {days} days, {os.cpu_count()} cores; fit_steps "
        f"{FIT_STEPS}, {ENVS} stretches of an hour: {EPISODE // ENVS} learning steps"
    )
    slots = number * runs.SLOTS * days
    return [
        row(
            "a street's days, with what is compiled", first + rest, "s", "<= 600", what
        ),
        row("an hour of a device", 1e3 * (first + rest) / slots, "ms", "", what),
        row("saved then", 100 * found["saved"], "%", "", "held-out day"),
        row(
            "switched off in use", 100 * found["switched_off"], "%", "", "held-out day"
        ),
        row("optimal", 100 * found["optimal"], "%", "", "held-out day"),
        row("MASE", found["mase"], "", "", "held-out day"),
    ]


def step_rows(smoke, environments):
    """Steps of environments per second; every one has one learning step of 32."""
    series = some_series()
    agents, steps, hidden = (2, 40, (8, 8)) if smoke else (AGENTS, STEPS, HIDDEN)
    what = f"{len(hidden)} x {hidden[0]}, one environment and batch of 32 a step"
    ours = _rate(_ours(hidden, steps), series, agents, steps)
    simple = _rate(plain.loop(hidden, steps), series, agents, steps)
    beside = energy.PFDRLConfig().dqn.num_envs
    fast = _rate(_ours(hidden, steps // beside, beside), series, agents, steps)
    found = [
        row(
            "steps per second, energy.dqn", ours, "1/s", "", f"{agents} agents, {what}"
        ),
        row("the same, a plain loop after PureJaxRL", simple, "1/s", "", what),
        row("energy.dqn, beside the plain loop", ours / simple, "x", ">= 1", what),
        row(
            "steps per second as streets do",
            fast,
            "1/s",
            "",
            f"{beside} environments of an agent, one batch for all",
        ),
    ]
    name = "Stable-Baselines3"
    for envs, mine in ((1, ours), (beside, fast)):
        theirs = _stable_baselines(environments, series, smoke, envs)
        if theirs is None:
            continue
        told = f"{envs} environments, one batch of 32 for a step of all"
        found.append(row(f"steps per second, {name}", theirs, "1/s", "", told))
        found.append(row("beside it, the same", mine / theirs, "x", "", told))
        if envs == 1:
            told = f"its loop of one environment; ours has {beside} of an agent"
            found.append(
                row("beside it, as streets do", fast / theirs, "x", ">= 50", told)
            )
    return found


def some_series() -> energy.Series:
    """Three days of a television, forecast by what it took an hour before."""
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
    """Steps of all agents per second, in turn, and a program on each core."""
    all_ = jax.jit(lambda keys: jax.lax.map(lambda key: run(key, series), keys))
    cores = os.cpu_count() or 1
    own = -(-agents // cores)
    keys = jax.random.split(jax.random.key(0), (cores, own))
    with concurrent.futures.ThreadPoolExecutor(cores) as threads:
        one = lambda keys: jax.block_until_ready(all_(keys))
        work = lambda keys: [*threads.map(one, keys)]
        return cores * own * steps / _timing.timed(work, keys, repeats=3).seconds


def _stable_baselines(environments, series, smoke, envs):
    """Their rate, in an environment of its own, or None where that is not there."""
    if environments is None:
        return None
    python = rivals.python(pathlib.Path(environments))
    if not python.exists():
        print(
            f"Stable-Baselines3 is not at {python}; python bench/_pfdrl_rivals.py DIR"
        )
        return None
    with tempfile.TemporaryDirectory() as folder:
        given, out = pathlib.Path(folder, "in.npz"), pathlib.Path(folder, "out.json")
        np.savez(given, **series.levels._asdict(), **_arrays(series))
        script = pathlib.Path(__file__).with_name("_rival_sb3.py")
        steps = 300 if smoke else 5000
        steps = steps * (1 if envs == 1 else 4)
        call = [str(python), str(script), *map(str, (given, out, steps, envs))]
        subprocess.run(call, check=True)
        return json.loads(out.read_text())["steps_per_second"]


def _arrays(series):
    return {"load": series.load, "forecast": series.forecast}


def row(name, value, unit, asked, what):
    """One figure."""
    return {
        "question": "speed",
        "name": name,
        "value": float(value),
        "unit": unit,
        "asked": asked,
        "what": what,
        **_timing.about(),
    }
