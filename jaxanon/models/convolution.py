"""Convolutions over time with fast gradients."""

import functools

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.kernels.portable import by_platform

NARROW = 16  # Channels up to which a product with patches beats XLA's convolution.
WIDE = 32  # Channels from which the Winograd form is faster than plain products.
# Transforms of six samples, of a kernel of three, and of their products to four output
# samples: Lavin and Gray's F(4, 3).
SAMPLE_TRANSFORM = (
    (4, 0, -5, 0, 1, 0),
    (0, -4, -4, 1, 1, 0),
    (0, 4, -4, -1, 1, 0),
    (0, -2, -1, 2, 1, 0),
    (0, 2, -1, -2, 1, 0),
    (0, 4, 0, -5, 0, 1),
)
KERNEL_TRANSFORM = (
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)
OUTPUT_TRANSFORM = (
    (1, 1, 1, 1, 1, 0),
    (0, 1, -1, 2, -2, 0),
    (0, 1, 1, 4, 4, 0),
    (0, 1, -1, 8, -8, 1),
)


class Conv(nn.Module):
    """Convolution over time, initialized with ``U(±1/√fan_in)`` as in PyTorch.

    The result is ``size - 1`` samples shorter than the input. With ``widen``, it is
    ``size - 1`` samples longer, as for a transposed convolution.
    """

    features: int
    size: int
    widen: bool = False

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, channels] -> float[batch, time', features]``."""
        shape = (self.size, x.shape[-1], self.features)
        # For a transposed convolution, PyTorch's fan-in counts the outputs.
        bound = (self.size * shape[1 + self.widen]) ** -0.5
        initial = lambda key, shape: jax.random.uniform(
            key, shape, jnp.float32, -bound, bound
        )
        kernel = self.param("kernel", initial, shape)
        bias = self.param("bias", initial, shape[-1:])
        return convolve(x, kernel, widen=self.widen) + bias[None, None]


def convolve(x, kernel, *, widen: bool = False):
    """Correlates ``x`` with a kernel over time.

    Args:
      x: ``float[batch, time, d_in]``.
      kernel: ``float[size, d_in, d_out]``; its first entry multiplies the earliest
        sample.
      widen: whether to pad ``size - 1`` zeros on both sides.

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
    """Convolution by patches; in a loop on a CPU, XLA's is 30 times slower."""
    size, d_in, d_out = kernel.shape
    x = jnp.pad(x, ((0, 0), edge, (0, 0)))
    if size == 3 and d_in >= WIDE and jnp.finfo(x.dtype).bits >= 32:
        return fewer_products(x, kernel)
    return patches(x, size) @ kernel.reshape(size * d_in, d_out)


def fewer_products(x, kernel):
    """Convolves over three samples with half the multiplications (Winograd).

    Rounding errors are two to four times those of a plain convolution, so ``convolve``
    does not use it for bfloat16.

    Args:
      x: ``float[batch, time, d_in]``.
      kernel: ``float[3, d_in, d_out]``.

    Returns:
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
    samples = jnp.stack(_sums(SAMPLE_TRANSFORM, six)).reshape(6, -1, d_in)
    products = samples @ jnp.stack(_sums(KERNEL_TRANSFORM, kernel))
    products = products.reshape(6, batch, fours, -1)
    outputs = jnp.stack(_sums(OUTPUT_TRANSFORM, products), axis=2)
    return outputs.reshape(batch, 4 * fours, -1)[:, : time - 2]


def _sums(table, parts):
    return [
        sum(c * part for c, part in zip(row, parts, strict=True) if c) for row in table
    ]


def _convolution(x, kernel, edge):
    return jax.lax.conv_general_dilated(
        x, kernel, (1,), [edge], dimension_numbers=("NWC", "WIO", "NWC")
    )


# patches and overlap_add are transposes of each other. JAX would derive a sum of
# full-size arrays.
@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def patches(x, size: int):
    """Extracts all windows of ``size`` consecutive samples.

    ``float[batch, time, d] -> float[batch, time - size + 1, size * d]``.
    """
    steps = x.shape[1] - size + 1
    return jnp.concatenate([x[:, j : j + steps] for j in range(size)], axis=2)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1,))
def overlap_add(parts, size: int):
    """Adds rows of ``size`` samples at their positions; the transpose of ``patches``.

    ``float[batch, time, size * d] -> float[batch, time + size - 1, d]``.
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
