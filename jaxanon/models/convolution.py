"""Convolutions over time whose gradients are as fast as they are."""

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels.portable import by_platform

NARROW = 16  # Channels up to which a product with patches beats XLA's convolution.
WIDE = 32  # Channels from which half the products pay for the sums around them.
# Sums of six samples, of a kernel of three, and of their products, that make four
# samples of the result: Lavin and Gray's F(4, 3).
OF_SAMPLES = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
OF_KERNEL = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
OF_PRODUCTS = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)


class Conv(nn.Module):
    """A convolution over time, ``U(±1/√fan_in)`` at the start as in PyTorch.

    Without padding the result is ``size - 1`` samples shorter; with ``widen`` as much
    longer, as of a transposed convolution.
    """

    features: int
    size: int
    widen: bool = False

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, channels] -> float[batch, time', features]``."""
        shape = (self.size, x.shape[-1], self.features)
        # Of a transposed convolution PyTorch counts the outputs as inputs.
        bound = (self.size * shape[1 + self.widen]) ** -0.5
        initial = lambda key, shape: jax.random.uniform(
            key, shape, jnp.float32, -bound, bound
        )
        kernel = self.param("kernel", initial, shape)
        bias = self.param("bias", initial, shape[-1:])
        return convolve(x, kernel, widen=self.widen) + bias[None, None]


def convolve(x, kernel, *, widen: bool = False):
    """Every ``size`` samples in a row, times the kernel.

    Args:
      x: ``float[batch, time, d_in]``.
      kernel: ``float[size, d_in, d_out]``; its first sample meets the earliest.
      widen: with zeros before and behind, ``size - 1`` each.

    Returns:
      ``float[batch, time - size + 1, d_out]``, or ``time + size - 1`` with ``widen``.

    Example:
      >>> x, kernel = jnp.array([1.0, 2.0, 4.0]), jnp.array([1.0, -1.0])
      >>> convolve(x[None, :, None], kernel[:, None, None])[0, :, 0]
      Array([-1., -2.], dtype=float32)
      >>> convolve(x[None, :, None], kernel[:, None, None], widen=True)[0, :, 0]
      Array([-1., -1., -2.,  4.], dtype=float32)
    """
    size, d_in, d_out = kernel.shape
    if widen and d_out <= NARROW:
        reverse = jnp.swapaxes(kernel[::-1], 0, 1).reshape(d_in, size * d_out)
        return overlap_add(x @ reverse, size)
    if not widen and d_in <= NARROW:
        return patches(x, size) @ kernel.reshape(size * d_in, d_out)
    return _wide(x, kernel, widen)


@functools.partial(jax.jit, static_argnums=2)  # Traced once for all blocks of a shape.
def _wide(x, kernel, widen):
    edge = (kernel.shape[0] - 1,) * 2 if widen else (0, 0)
    return by_platform(
        x,
        kernel,
        cpu=functools.partial(_product, edge=edge),
        default=functools.partial(_convolution, edge=edge),
    )


def _product(x, kernel, edge):
    """With patches. Inside a loop XLA's convolution on a CPU is 30 times slower."""
    size, d_in, d_out = kernel.shape
    x = jnp.pad(x, ((0, 0), edge, (0, 0)))
    if size == 3 and d_in >= WIDE and jnp.finfo(x.dtype).bits >= 32:
        return fewer_products(x, kernel)
    return patches(x, size) @ kernel.reshape(size * d_in, d_out)


def fewer_products(x, kernel):
    """A convolution over three samples by half the products.

    Rounding is two to four times that of sums of products: of bfloat16's eight bits
    little would be left, which go another way.

    ``float[batch, time, d_in]``, ``float[3, d_in, d_out]`` to
    ``float[batch, time - 2, d_out]``.

    Example:
      >>> x, kernel = jnp.arange(5.0) ** 2, jnp.array([1.0, -2.0, 1.0])
      >>> fewer_products(x[None, :, None], kernel[:, None, None])[0, :, 0].round(4)
      Array([2., 2., 2.], dtype=float32)

    References:
      Lavin and Gray, Fast algorithms for convolutional neural networks, CVPR 2016,
      section 4; Winograd, Arithmetic complexity of computations, SIAM 1980.
    """
    batch, time, d_in = x.shape
    fours = -(-(time - 2) // 4)
    x = jnp.pad(x, ((0, 0), (0, 4 * fours + 4 - time), (0, 0)))
    x = x.reshape(batch, fours + 1, 4, d_in)
    six = [x[:, :-1, j] for j in range(4)] + [x[:, 1:, j] for j in range(2)]
    samples = jnp.stack(_sums(OF_SAMPLES, six)).reshape(6, -1, d_in)
    made = samples @ jnp.stack(_sums(OF_KERNEL, kernel))
    made = made.reshape(6, batch, fours, -1)
    made = jnp.stack(_sums(OF_PRODUCTS, made), axis=2)
    return made.reshape(batch, 4 * fours, -1)[:, : time - 2]


def _sums(table, parts):
    return [
        sum(c * part for c, part in zip(row, parts, strict=True) if c) for row in table
    ]


def _convolution(x, kernel, edge):
    return jax.lax.conv_general_dilated(
        x, kernel, (1,), [edge], dimension_numbers=("NWC", "WIO", "NWC")
    )


# Each is the other's transpose. JAX derives that too, as a sum of arrays of full size.
@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def patches(x, size: int):
    """Every ``size`` samples in a row.

    ``float[batch, time, d]`` to ``float[batch, time - size + 1, size * d]``.
    """
    steps = x.shape[1] - size + 1
    return jnp.concatenate([x[:, j : j + steps] for j in range(size)], axis=2)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def overlap_add(parts, size: int):
    """Rows of ``size`` samples put where they came from, and added up.

    ``float[batch, time, size * d]`` to ``float[batch, time + size - 1, d]``.
    """
    shift = lambda j, part: jnp.pad(part, ((0, 0), (j, size - 1 - j), (0, 0)))
    return sum(shift(j, part) for j, part in enumerate(jnp.split(parts, size, axis=2)))


patches.defvjp(
    lambda x, size: (patches(x, size), None),
    lambda size, _, cotangent: (overlap_add(cotangent, size),),
)
overlap_add.defvjp(
    lambda parts, size: (overlap_add(parts, size), None),
    lambda size, _, cotangent: (patches(cotangent, size),),
)
