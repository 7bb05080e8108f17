"""Blocks of a U-Net over time: residual, self-attention, halving, doubling."""

import math

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.convolution import convolve

SIDE = 3  # Samples that a convolution sees.
GROUPS = 8
DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def norm(features: int, name: str, dtype) -> nn.GroupNorm:
    """Of groups of channels in each window alone; its sums are in float32."""
    return nn.GroupNorm(math.gcd(GROUPS, features), name=name, dtype=dtype)


class Convolution(nn.Module):
    """Over three samples, zero beyond the edges; as long as before."""

    features: int
    zero: bool = False  # Whether it starts as nothing, so that its block does.

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d_in] -> float[batch, time, features]``."""
        initial = nn.initializers.zeros if self.zero else nn.initializers.he_normal()
        kernel = self.param("kernel", initial, (SIDE, x.shape[-1], self.features))
        bias = self.param("bias", nn.initializers.zeros, (self.features,))
        edge = SIDE // 2
        padded = jnp.pad(x, ((0, 0), (edge, edge), (0, 0)))
        kernel, bias = kernel.astype(x.dtype), bias.astype(x.dtype)
        return convolve(padded, kernel) + bias[None, None]


class Residual(nn.Module):
    """Two convolutions, scaled and shifted in between by what is known; and a way past.

    References:
      Ho et al., NeurIPS 2020, appendix B; Nichol and Dhariwal, ICML 2021, section 3 for
      the scale beside the shift.
    """

    features: int

    @nn.compact
    def __call__(self, x, told):
        """``float[batch, time, d_in], float[batch, d] -> float[batch, time, f]``."""
        dtype = x.dtype
        y = nn.silu(norm(x.shape[-1], "norm_1", dtype)(x))
        y = Convolution(self.features, name="conv_1")(y)
        told = nn.Dense(2 * self.features, name="told", dtype=dtype)(nn.silu(told))
        scale, shift = jnp.split(told[:, None], 2, axis=-1)
        y = norm(self.features, "norm_2", dtype)(y) * (1 + scale) + shift
        y = Convolution(self.features, zero=True, name="conv_2")(nn.silu(y))
        if x.shape[-1] != self.features:
            x = nn.Dense(self.features, name="past", dtype=dtype)(x)
        return x + y


class Attention(nn.Module):
    """A transformer block: every sample looks at all others, then at itself.

    References:
      Vaswani et al., Attention is all you need, NeurIPS 2017.
    """

    heads: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, features]`` to the same; features in whole heads."""
        batch, time, features = x.shape
        dense = lambda size, name, **given: nn.Dense(
            size, name=name, dtype=x.dtype, **given
        )
        nothing = {"kernel_init": nn.initializers.zeros}
        y = dense(3 * features, "query_key_value")(norm(features, "norm_1", x.dtype)(x))
        parts = y.reshape(batch, time, 3, self.heads, features // self.heads)
        query, key, value = jnp.moveaxis(parts, 2, 0)
        seen = jax.nn.dot_product_attention(query, key, value)
        x = x + dense(features, "seen", **nothing)(seen.reshape(batch, time, features))
        y = dense(2 * features, "inner")(norm(features, "norm_2", x.dtype)(x))
        return x + dense(features, "outer", **nothing)(nn.silu(y))


class Halve(nn.Module):
    """Each two samples become one."""

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d] -> float[batch, time / 2, d]``."""
        batch, time, features = x.shape
        pairs = x.reshape(batch, time // 2, 2 * features)
        return nn.Dense(features, name="pairs", dtype=x.dtype)(pairs)


class Double(nn.Module):
    """Each sample becomes two, and a convolution tells them apart."""

    features: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d] -> float[batch, 2 * time, features]``."""
        return Convolution(self.features, name="conv")(jnp.repeat(x, 2, axis=1))


def sinusoids(t, size: int):
    """Sines and cosines of a step, at frequencies from 1 down to 1/10,000.

    Args:
      t: ``int[batch]``.
      size: even.

    Returns:
      ``float32[batch, size]``, sines first.

    Example:
      >>> sinusoids(jnp.array([0]), 4)
      Array([[0., 0., 1., 1.]], dtype=float32)

    References:
      Vaswani et al., NeurIPS 2017, section 3.5.
    """
    half = size // 2
    frequency = 10_000.0 ** (-jnp.arange(half) / max(half - 1, 1))
    angle = jnp.float32(t)[:, None] * jnp.float32(frequency)[None]
    return jnp.concatenate([jnp.sin(angle), jnp.cos(angle)], axis=1)
