"""Overhead of our sampler over its network, and windows per second of diffusers."""

import functools
import json
import math
import os
import pathlib
import subprocess
import tempfile
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np

from harness import rivals, timing
from harness.comparison import speed_row
from harness.data import made_spec
from jaxanon import kernels
from jaxanon.methods.common import diffusion, generator
from jaxanon.methods.common.diffusion import AVERAGE
from jaxanon.methods.privatehub import sampling
from jaxanon.methods.privatehub.config import HYPER, PrivateHubConfig
from jaxanon.methods.privatehub.networks import STATISTICS, networks
from jaxanon.models import convolution

BATCH, TIME, CHANNELS, STEPS = 128, 128, 6, 20
TEST_WINDOWS, TEST_CHANNELS = 13_344, 2  # MotionSense, cut for gender.
PIECE = 1024  # Windows rewritten per call, as in ``Run.anonymize``.
BEYOND = 1e-3  # Scale of the network's output, small enough to prevent overflow.
ON_GPU = " on a GPU"  # Suffix of rows measured on a GPU.
NEAR = 1.25  # Parameter counts within this factor are considered equal.


def rows(smoke, environments=None) -> list[dict]:
    """Returns rows on our overhead, diffusers and MotionSense's test windows."""
    parts = [overhead_rows, convolution_rows]
    parts.append(functools.partial(rival_rows, environments=environments))
    if jax.default_backend() == "gpu":  # First: the main requirement on a GPU.
        parts.insert(0, rewriting_rows)
    found = []
    for part in parts:
        found += (made := part(smoke))
        for one in made:
            told = f"{one['name']}: {one['value']:.4g} {one['unit']}"
            print(f"{told} ({one['what']})", flush=True)
    return found


class Problem:
    """Networks with random weights and functions that sample with them."""

    def __init__(self, smoke, channels=CHANNELS, dtype="float32"):
        small = {"widths": (8,), "heads": 2, "num_train_timesteps": 20}
        small |= {"classifier_filters": (4,), "classifier_features": 4}
        small = small if smoke else {}
        self.config = PrivateHubConfig(
            num_inference_steps=4 if smoke else STEPS, dtype=dtype, **small
        )
        self.batch, self.time = (8, 32) if smoke else (BATCH, TIME)
        names = tuple(f"x{n}" for n in range(channels))
        spec = made_spec("speed", self.time, names)  # Spec of synthetic windows.
        self.nets = networks(spec, self.config)
        self.params = filled(self.nets)
        self.hyper = {name: jnp.float32(getattr(self.config, name)) for name in HYPER}
        shape = self.batch, self.time, channels
        self.x = jax.random.normal(jax.random.key(1), shape)
        labels = jnp.arange(self.batch, dtype=jnp.int32) % 4
        self.classes = generator.every(self.nets, {"activity": labels})
        self.steps = self.config.num_inference_steps

    @property
    def parameters(self) -> int:
        """Number of parameters of the denoiser."""
        return sum(leaf.size for leaf in jax.tree.leaves(self.params[AVERAGE]))

    @property
    def what(self) -> str:
        """The problem as text."""
        return (
            f"{self.batch} windows of {self.time} x {self.x.shape[2]}, widths "
            f"{'-'.join(map(str, self.config.widths))}, {self.parameters:,} "
            f"parameters, {self.steps} steps, {os.cpu_count()} cores"
        )

    def ready(self, fn):
        """Returns ``fn(params, ...)`` compiled with its parameters bound."""
        return functools.partial(jax.jit(fn), self.params)

    def synthesise(self):
        """Returns ``seed -> windows``, generated with guidance by two conditions."""
        given = self.hyper, self.classes
        return self.ready(
            lambda params, seed: sampling.synthesise(
                self.nets, jax.random.key(seed), params, *given
            )
        )

    def rewrite(self):
        """Returns ``(seed, x) -> windows``, rewritten with guidance by three."""
        return self.ready(
            lambda params, seed, x: sampling.rewrite(
                self.nets, jax.random.key(seed), params, self.hyper, x
            )
        )

    def plain(self):
        """Returns ``(seed, x) -> windows`` from noise with one condition, as rivals."""
        told = self.nets.nothing(self.batch)
        last = self.config.num_train_timesteps

        def run(params, seed, x):
            denoise = lambda x, t: self.nets.denoise(params[AVERAGE], x, t, told)
            key = jax.random.key(seed)
            return diffusion.denoised(self.nets, key, denoise, x, last)

        return self.ready(run)

    def calls_alone(self, conditions, start):
        """Returns only the network calls that guidance with ``conditions`` makes."""
        told = self.nets.nothing(self.batch)
        stacked = jax.tree.map(lambda leaf: jnp.stack([leaf] * conditions), told)
        levels = kernels.diffusion_steps(start, min(self.steps, start))[:-1]

        def run(params, x):
            one = lambda x, t, c: self.nets.denoise(params[AVERAGE], x, t, c)

            def call(x, t):
                said = jax.vmap(one, in_axes=(None, None, 0))(x, t, stacked)
                return x + BEYOND * said.sum(axis=0), None

            return jax.lax.scan(call, x, jnp.asarray(levels))[0]

        return self.ready(run)


def filled(nets):
    """Returns random nonzero weights without running ``init``.

    A compiler might remove layers initialized to zero. NumPy draws the weights because
    compiling ``init`` takes longer than the timed code.
    """
    shapes = jax.eval_shape(nets.init, jax.random.key(0))
    draws, spread = np.random.default_rng(3), lambda x: max(1, math.prod(x.shape[:-1]))
    drawn = lambda x: draws.standard_normal(x.shape, np.float32) * spread(x) ** -0.5
    made = jax.tree.map(lambda x: jnp.asarray(drawn(x)), shapes)
    return made | {STATISTICS: jax.tree.map(jnp.zeros_like, made[STATISTICS])}


def overhead_rows(smoke):
    """Measures the time outside the network, alternating with the network alone."""
    problem, repeats = Problem(smoke), 2 if smoke else 7
    seed, found = jnp.uint32(4), []
    first, last = (
        diffusion.first_step(problem.config),
        problem.config.num_train_timesteps,
    )
    kinds = (
        ("from nothing", problem.synthesise(), (seed,), 2, last),
        ("rewriting", problem.rewrite(), (seed, problem.x), 3, first),
    )
    for name, ours, given, conditions, start in kinds[1:] if smoke else kinds:
        alone = problem.calls_alone(conditions, start)
        pair = timing.in_turn(
            {
                "ours": functools.partial(ours, *given),
                "alone": functools.partial(alone, problem.x),
            },
            repeats=repeats,
        )
        took, network = pair["ours"].seconds, pair["alone"].seconds
        share = 100 * max(0.0, 1 - network / took)
        what = f"{problem.what}, {conditions} conditions a step"
        called = f"share of time outside the network, {name}"
        found.append(row(called, share, "%", "<= 5", what))
        rate = problem.batch / took
        found.append(row(f"windows, {name}", rate, "1/s", "", what))
    return found


def convolution_rows(smoke):
    """Compares the network with one that computes all products of its convolutions."""
    problem = Problem(smoke)
    calls = lambda: functools.partial(
        problem.calls_alone(1, problem.config.num_train_timesteps), problem.x
    )
    ours, every = calls(), calls()
    with mock.patch.object(convolution, "WIDE", math.inf):
        jax.block_until_ready(every())  # Trace and compile.
    pair = timing.in_turn({"ours": ours, "every": every}, repeats=2 if smoke else 7)
    found = pair["every"].seconds / pair["ours"].seconds
    name = "network over one with every product of its convolutions"
    return [row(name, found, "x", "", f"{problem.what}, no guidance")]


def rival_rows(smoke, environments):
    """Compares with diffusers' pipeline: one condition, plain DDIM."""
    problem = Problem(smoke)
    ours = (
        problem.batch / timing.timed(problem.plain(), jnp.uint32(2), problem.x).seconds
    )
    told = f"{problem.what}, no guidance"
    found = [row("windows, one condition", ours, "1/s", "", told)]
    theirs = diffusers(environments, problem, 2 if smoke else 5)
    if theirs is None:
        return found
    what = (
        f"UNet1DModel of {theirs['parameters']:,} parameters, widths "
        f"{theirs['widths']}, DDIMScheduler, {theirs['threads']} threads, diffusers "
        f"{theirs['versions']}"
    )
    rate = theirs["windows_per_s"]
    found.append(row("windows of diffusers", rate, "1/s", "", what))
    equal = 1 / NEAR <= theirs["parameters"] / problem.parameters <= NEAR
    name = "over diffusers' UNet1DModel" + ("" if equal else " of another size")
    asked = ">= 2" if equal else ""
    return [*found, row(name, ours / rate, "x", asked, told)]


def diffusers(environments, problem, repeats):
    """Runs diffusers in its environment; returns None if it is not installed."""
    python = rivals.python("diffusers", environments)
    if python is None:
        return None
    given = {
        "batch": problem.batch,
        "channels": problem.x.shape[2],
        "time": problem.time,
        "steps": problem.steps,
        "num_steps": problem.config.num_train_timesteps,
        "parameters": problem.parameters,
        "repeats": repeats,
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, out = (pathlib.Path(folder, name) for name in ("in.json", "out.json"))
        asked.write_text(json.dumps(given))
        call = rivals.call("rivals.diffusers", asked, out, python=python)
        subprocess.run(call, check=True)
        return json.loads(out.read_text())


def rewriting_rows(smoke):
    """Rewrites as many windows as MotionSense tests with, in bfloat16."""
    problem = Problem(smoke, TEST_CHANNELS, "bfloat16")
    number, piece = (16, 8) if smoke else (TEST_WINDOWS, PIECE)
    windows = np.zeros((number, problem.time, TEST_CHANNELS), np.float32)
    make = problem.rewrite()

    def every():
        parts = []
        for start in range(0, number, piece):
            own = windows[start : start + piece]
            padded = np.pad(own, [(0, piece - len(own)), (0, 0), (0, 0)])
            parts.append(np.asarray(make(jnp.uint32(start), jnp.asarray(padded))))
        return parts

    took, compile_s, _ = timing.timed(every, repeats=1 if smoke else 3)
    print(f"first call, including compilation: {compile_s + took:.0f} s")
    what = (
        f"{number:,} windows of {problem.time} x {TEST_CHANNELS} in pieces of {piece}, "
        f"fetched, by {jax.devices()[0].device_kind}; {problem.what}"
    )
    called = f"{number} windows" if smoke else "MotionSense's test windows"
    asked = "<= 10" if jax.default_backend() == "gpu" and not smoke else ""
    return [row(f"{called} rewritten", took, "s", asked, what)]


def row(name, value, unit, asked, what):
    """Returns a row; names of GPU rows have a suffix."""
    beside = ON_GPU if jax.default_backend() == "gpu" else ""
    return speed_row(name + beside, value, unit, asked, what)
