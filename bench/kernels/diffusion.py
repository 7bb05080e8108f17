"""Overhead of a sampler over its network."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from harness import timing
from jaxanon import kernels
from jaxanon.kernels.diffusion import cases, reference

SOLVER = "DPM-Solver++"


def rows(report, smoke):
    """Adds the samplers' overhead over their network calls and our Python loop's."""
    repeats = 2 if smoke else 5
    for name in ["small"] if smoke else ["windows", "strided"]:
        problem = _Problem(cases.CASES[name])
        problem.check()
        problem.measure(report, repeats)


class _Problem:
    """A case with its network, schedule and initial sample."""

    def __init__(self, case):
        keys = jax.random.split(jax.random.key(0), 3)
        self.case = case
        self.network = cases.network(case, keys[0])
        self.denoise = lambda x, t: self.network(x, t, 0.5)
        self.schedule = kernels.noise_schedule(case.betas)
        self.x = jax.random.normal(keys[1], case.shape)
        self.steps = kernels.diffusion_steps(len(case.betas), case.num_steps)
        self.key = keys[2]
        self.ddim, self.loop = self.sampler("DDIM"), self.python_loop()
        self.solver = self.sampler(SOLVER)

    def sampler(self, name):
        """Returns ``x -> sample``, jitted; a guided sampler makes two passes a step."""
        sample, denoise = kernels.ddim_sample, self.denoise
        if name == SOLVER:
            run = functools.partial(kernels.dpm_solver_sample, denoise, prediction="v")
            return jax.jit(lambda x: run(self.schedule, x, self.steps))
        if name.startswith("DDPM"):
            sample = kernels.ddpm_sample
        if "guided" in name:
            denoise = kernels.classifier_free_guidance(self.network, 0.5, 0.0, 2.0)
        run = functools.partial(sample, denoise, prediction="v")
        return jax.jit(lambda x: run(self.key, self.schedule, x, self.steps))

    def calls_alone(self, passes):
        """Returns only the network calls, each of which feeds the next one.

        Adds the outputs of two passes, so that the compiler cannot remove one.
        """

        def call(x, t):
            if passes == 1:
                return self.denoise(x, t), None
            both = jax.vmap(self.network, in_axes=(None, None, 0))
            return jnp.sum(both(x, t, jnp.array([0.5, 0.0])), axis=0), None

        return jax.jit(lambda x: jax.lax.scan(call, x, jnp.array(self.steps[:-1]))[0])

    def python_loop(self):
        """Returns a loop with a jitted call per step, a common way to sample."""

        @jax.jit
        def step(x, t, to):
            output = self.denoise(x, t)
            return kernels.ddim_step(
                self.key, self.schedule, x, output, t, to, prediction="v"
            )

        levels = [jnp.int32(t) for t in self.steps]

        def run(x):
            for t, to in itertools.pairwise(levels):
                x = step(x, t, to)
            return x

        return run

    def noise_alone(self):
        """Returns only the random numbers of all steps."""

        def draw(total, t):
            key = jax.random.fold_in(self.key, t)
            return total + jax.random.normal(key, self.case.shape), None

        return jax.jit(lambda x: jax.lax.scan(draw, x, jnp.array(self.steps[:-1]))[0])

    def check(self):
        """Checks that samplers and Python loop agree with the reference loops."""
        denoise = jax.jit(self.denoise)
        loops = lambda x, t: np.asarray(denoise(x.astype(np.float32), np.int32(t)))
        x, none = np.asarray(self.x, np.float64), np.zeros(len(self.case.betas) + 1)
        given = loops, self.case.betas, x, self.steps.tolist()
        expected = reference.ddim(*given, none, prediction="v")
        other = reference.dpm_solver(*given, prediction="v")
        runs = (self.ddim, expected), (self.loop, expected), (self.solver, other)
        for run, wanted in runs:
            error = np.abs(np.asarray(run(self.x)) - wanted).max()
            assert error < 1e-3 * np.abs(wanted).max(), error

    def measure(self, report, repeats):
        """Times each sampler in turn with its network calls."""
        case, size = self.case, self.x.size
        calls = {passes: self.calls_alone(passes) for passes in (1, 2)}
        shapes = f"{case.shape}, {case.num_steps} steps, width {case.width}"
        for name in ("DDIM", "DDIM, guided", SOLVER, "DDPM"):
            passes = 2 if "guided" in name else 1
            flops = passes * case.num_steps * cases.flops_per_call(case)
            # A step's own ten operations per number are under a hundredth of that.
            flops += timing.NORMAL * case.num_steps * size if name == "DDPM" else 0
            # State read and written, each output read.
            num_bytes = case.num_steps * size * 4 * (2 + passes)
            # Plus the previous outputs.
            num_bytes += case.num_steps * size * 4 * 2 * (name == SOLVER)
            made = {"DDIM": self.ddim, SOLVER: self.solver}
            run = made[name] if name in made else self.sampler(name)
            pair = timing.in_turn(
                {"ours": run, "alone": calls[passes]}, self.x, repeats=repeats
            )
            ours, alone = pair["ours"].seconds, pair["alone"].seconds
            work = {"operations": flops, "bytes": num_bytes, "seconds": ours}
            rate = case.batch / ours
            report.add(f"{name}, windows/s", rate, "windows/s", shapes, **work)
            what = f"{name}, over its network calls alone"
            report.add(what, ours / alone, "x as long", shapes, **work)
            if name == "DDIM":
                took = timing.timed(self.loop, self.x, repeats=repeats).seconds
                work["seconds"] = took
                what = "DDIM in a Python loop, over ours"
                report.add(what, took / ours, "x as long", shapes, **work)
            if name == "DDPM":
                took = timing.timed(self.noise_alone(), self.x, repeats=repeats).seconds
                work = {
                    "operations": timing.NORMAL * case.num_steps * size,
                    "bytes": 2 * 4 * case.num_steps * size,  # A sum, read and written.
                    "seconds": took,
                }
                what = "DDPM's random numbers, over calls alone"
                report.add(what, took / alone, "x as long", shapes, **work)
