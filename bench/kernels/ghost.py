"""Clipped gradient sums without per-example gradients, compared with rivals."""

import time

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from harness import timing
from jaxanon.kernels import ghost
from jaxanon.models.layers import MultiLayer, MultiLSTM

MAX_NORM = 0.1


class FlaxLSTM(nn.Module):
    """The same stack with Flax's cells."""

    size: int
    layers: int

    @nn.compact
    def __call__(self, x):
        for _ in range(self.layers):
            x = nn.RNN(nn.OptimizedLSTMCell(self.size))(x)
        return x


def rows(report, smoke):
    """Times a multi-layer perceptron, a recurrent stack, and rivals."""
    mlp(report, smoke)
    recurrent(report, smoke)


def mlp(report, smoke):
    """Times an MLP of 0.83 M parameters at batch size 256."""
    widths, batch, d_in = ((512, 512, 256, 128, 50), 256, 768)
    if smoke:
        widths, batch, d_in = (16, 8), 8, 12
    net = MultiLayer(widths)
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (batch, d_in))
    y = jax.random.normal(keys[1], (batch, widths[-1]))
    params = jax.jit(net.init)(keys[2], x)
    loss_fn = lambda params, xy: jnp.mean((net.apply(params, xy[0]) - xy[1]) ** 2, -1)
    sizes = list(zip((d_in, *widths[:-1]), widths, strict=True))
    # All variants count the work of the non-private step, which the result requires:
    # two operations forward and four backward per weight and row, none for the input.
    weights = sum(a * b for a, b in sizes)
    flops = batch * (6 * weights - 2 * sizes[0][0] * sizes[0][1])
    # Forward and backward read and write every activation about once, read weights
    # twice and write their gradient.
    numbers = 2 * batch * (d_in + 2 * sum(widths)) + 3 * weights
    shapes = f"{weights / 1e6:.2f} M weights, batch {batch}"
    took = measure(report, "MLP", shapes, loss_fn, params, (x, y), flops, numbers)
    expected = took["per-example"].result
    work = _work(flops, numbers, took["ours, flat"].seconds)
    for name, seconds, gradient in torch_rivals(params, x, y, 1 if smoke else 3):
        np.testing.assert_allclose(gradient, first_kernel(expected), atol=2e-3)
        report.over(f"MLP: ours, flat over {name}", seconds, work, shapes)
    for what, seconds, gradient in jax_privacy_rivals(loss_fn, params, x, y):
        np.testing.assert_allclose(gradient, first_kernel(expected), atol=1e-3)
        report.over(f"MLP: ours, flat over {what}", seconds, work, shapes)


def recurrent(report, smoke):
    """Times eight LSTM layers with 64 units, batch size 64, 128 steps."""
    layers, size, batch, steps, d_in = 8, 64, 64, 128, 6
    if smoke:
        layers, size, batch, steps, d_in = 1, 4, 3, 5, 2
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (batch, steps, d_in))
    y = jax.random.normal(keys[1], (batch, size))
    shapes = f"{layers} x {size} units, batch {batch}, {steps} steps"
    weights = 4 * size * (d_in + size + (layers - 1) * 2 * size)
    flops = 6 * batch * steps * weights
    # Per step and unit: four gates, cell and output, forward and backward, twice.
    numbers = 2 * batch * steps * layers * 14 * size
    took = {}
    nets = {"LSTM": MultiLSTM((size,) * layers)}
    if not smoke:  # It compiles slowly.
        nets["Flax's LSTM"] = FlaxLSTM(size, layers)
    for name, net in nets.items():
        params = jax.jit(net.init)(keys[2], x)

        def loss_fn(params, xy, net=net):
            return jnp.mean((net.apply(params, xy[0])[:, -1] - xy[1]) ** 2, axis=-1)

        took[name] = measure(
            report, name, shapes, loss_fn, params, (x, y), flops, numbers
        )
    if smoke:
        return
    theirs, ours = (
        took[name][kind].seconds
        for name, kind in (("Flax's LSTM", "per-example"), ("LSTM", "ours, flat"))
    )
    work = _work(flops, numbers, ours)
    report.over("LSTM: ours, flat over vmap(grad) of Flax's", theirs, work, shapes)


def measure(report, name, shapes, loss_fn, params, batch, flops, numbers):
    """Checks and times the non-private step, ours, and ``vmap(grad)`` with clipping."""
    bounds = jax.tree.map(lambda _: MAX_NORM, params)
    mean = lambda params, batch: jnp.mean(loss_fn(params, batch))
    total = lambda bounds: (
        lambda params, batch: (
            ghost.clipped_gradient_sum(loss_fn, params, batch, bounds)[0].value
        )
    )
    steps = {
        "non-private": jax.grad(mean),
        "ours, per layer": total(bounds),
        "ours, flat": total(MAX_NORM),
        "per-example": lambda params, batch: per_example(loss_fn, params, batch),
    }
    compiled, compile_s = {}, {}
    for kind, step in steps.items():  # Takes minutes on a GPU.
        start = time.perf_counter()
        compiled[kind] = jax.jit(step).lower(params, batch).compile()
        compile_s[kind] = time.perf_counter() - start
        print(f"{name}: {kind} compiled in {compile_s[kind]:.0f} s", flush=True)
    took = timing.in_turn(compiled, params, batch, repeats=7)
    for kind, program in compiled.items():
        seconds = took[kind].seconds
        report.add(
            f"{name}: {kind}",
            seconds * 1e3,
            "ms",
            shapes,
            **_work(flops, numbers, seconds),
            temporary_mib=program.memory_analysis().temp_size_in_bytes / 2**20,
            compile_s=compile_s[kind],
        )
    close = lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4 * abs(a).max())
    jax.tree.map(close, took["per-example"].result, took["ours, flat"].result)
    plain = took["non-private"].seconds
    for kind in ("ours, per layer", "ours, flat", "per-example"):
        seconds = took[kind].seconds
        work = _work(flops, numbers, seconds)
        what = f"{name}: {kind} over non-private"
        report.add(what, seconds / plain, "x as long", shapes, **work)
    work = _work(flops, numbers, took["ours, flat"].seconds)
    theirs = took["per-example"].seconds
    report.over(f"{name}: ours, flat over vmap(grad)", theirs, work, shapes)
    return took


def _work(flops, numbers, seconds):
    return timing.work(flops, 4 * numbers, seconds)


def per_example(loss_fn, params, batch):
    """Stores every gradient, clips and sums them: the rival within JAX."""
    one = lambda params, x: loss_fn(params, jax.tree.map(lambda a: a[None], x))[0]
    gradients = jax.vmap(jax.grad(one), (None, 0))(params, batch)
    squares = [
        jnp.sum(jnp.square(leaf.reshape(len(leaf), -1)), axis=1)
        for leaf in jax.tree.leaves(gradients)
    ]
    scale = jnp.minimum(1, MAX_NORM / jnp.sqrt(sum(squares)))
    return jax.tree.map(lambda leaf: jnp.tensordot(scale, leaf, 1), gradients)


def first_kernel(params):
    """Returns the kernel of the first dense layer."""
    return np.asarray(params["params"]["Dense_0"]["kernel"])


def torch_rivals(params, x, y, repeats):
    """Yields (name, seconds, first kernel's gradient) of Opacus if installed."""
    if not timing.installed("opacus", "Opacus"):
        return []
    from kernels import opacus_rival

    arrays = jax.tree.map(np.asarray, (params["params"], x, y))
    return opacus_rival.measure(*arrays, MAX_NORM, repeats)


def jax_privacy_rivals(loss_fn, params, x, y):
    """Yields the same for jax-privacy, by default and in microbatches."""
    if not timing.installed("jax_privacy", "jax-privacy"):
        return
    import jax_privacy

    loss = lambda params, x, y: loss_fn(params, (x, y))[0]
    few = max(2, len(x) // 16)
    sizes = {"jax-privacy": None, f"jax-privacy, microbatches of {few}": few}
    for name, size in sizes.items():
        clipped = jax_privacy.clipped_grad(
            loss,
            argnums=0,
            batch_argnums=(1, 2),
            l2_clip_norm=MAX_NORM,
            microbatch_size=size,
        )
        took = timing.timed(jax.jit(clipped), params, x, y, repeats=2)
        yield name, took.seconds, first_kernel(took.result)
