"""U-Net with self-attention over time, the denoiser of diffusion models."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import linen as nn

from jaxanon.models.conditions import Condition
from jaxanon.models.convolution import convolve


class UNet(nn.Module):
    """U-Net that denoises windows, given a diffusion step and a condition.

    On the way down, each level has ``blocks`` residual blocks, then halves the window.
    On the way up, each level has one more block, and each block also takes the output
    of a block on the way down. Transformer blocks follow the residual blocks of the
    narrowest level, which has the fewest samples.

    The sum of embeddings of the step, the classes (with one more class for "unknown")
    and the statistics scales and shifts each block. The last layer starts at 0.

    Parameters and norms are float32; ``dtype="bfloat16"`` only applies to products.

    Example:
      >>> import jax
      >>> from jaxanon.models.conditions import null_condition
      >>> condition = null_condition({"activity": 3}, num_features=4, batch=2)
      >>> net = UNet((("activity", 3),), widths=(8, 16), heads=2)
      >>> inputs = jnp.zeros((2, 64, 5)), jnp.array([1, 7]), condition
      >>> params = jax.eval_shape(net.init, jax.random.key(0), *inputs)
      >>> jax.eval_shape(net.apply, params, *inputs).shape
      (2, 64, 5)

    References:
      Ronneberger, Fischer, Brox, U-Net, MICCAI 2015; Ho et al., Denoising diffusion
      probabilistic models, NeurIPS 2020, appendix B. PrivateHub publishes no widths.
    """

    sizes: tuple[tuple[str, int], ...]  # attributes and their numbers of classes
    widths: Sequence[int] = (32, 64, 128)  # channels of the levels
    blocks: int = 1
    heads: int = 4
    dtype: str = "float32"

    @nn.compact
    def __call__(self, x, t, condition: Condition):
        """Returns the prediction of noise, x0 or v, with shape and dtype of ``x``.

        Args:
          x: ``float[batch, time, channels]``; time must be a multiple of
            ``2 ** (len(widths) - 1)``.
          t: ``int[]`` or ``int[batch]``, diffusion steps.
          condition: condition of the windows.

        Raises:
          ValueError: if a level cannot halve the window, or if the last width is not a
            multiple of ``heads``.
        """
        check_halved(x.shape[1], len(self.widths))
        check_heads(self.widths, self.heads)
        like, dtype = x, DTYPES[self.dtype]
        embedded = self._embed(jnp.broadcast_to(jnp.asarray(t), x.shape[:1]), condition)
        embedded, x = embedded.astype(dtype), x.astype(dtype)

        def block(x, features, name, attend):
            x = Residual(features, name=f"{name}_residual")(x, embedded)
            return Attention(self.heads, name=f"{name}_attention")(x) if attend else x

        lowest = len(self.widths) - 1
        x = Convolution(self.widths[0], name="first")(x)
        skips = [x]
        for level, width in enumerate(self.widths):
            for number in range(self.blocks):
                x = block(x, width, f"down_{level}_{number}", level == lowest)
                skips.append(x)
            if level < lowest:
                x = Halve(name=f"halve_{level}")(x)
                skips.append(x)
        x = block(x, self.widths[-1], "middle_0", True)
        x = block(x, self.widths[-1], "middle_1", False)
        for level, width in reversed([*enumerate(self.widths)]):
            for number in range(self.blocks + 1):
                x = jnp.concatenate([x, skips.pop()], axis=-1)
                x = block(x, width, f"up_{level}_{number}", level == lowest)
            if level:
                x = Double(self.widths[level - 1], name=f"double_{level}")(x)
        x = nn.silu(norm(x.shape[-1], "norm", dtype)(x))
        x = Convolution(like.shape[-1], zero=True, name="last")(x)
        return x.astype(like.dtype)

    def _embed(self, t, condition):
        """Embedding of step and condition, ``float32[batch, d]``."""
        size = 4 * self.widths[0]
        total = nn.Dense(size, name="step_1")(sinusoids(t, self.widths[0]))
        total = nn.Dense(size, name="step_2")(nn.silu(total))
        for name, classes in self.sizes:
            table = nn.Embed(classes + 1, size, name=f"classes_{name}")
            total = total + table(condition.classes[name])
        known = condition.known[:, None]
        features = nn.Dense(size, name="features_1")(
            jnp.where(known, condition.features, 0)
        )
        features = nn.Dense(size, name="features_2")(nn.silu(features))
        return total + jnp.where(known, features, 0)


def check_halved(time: int, levels: int, before: int = 0) -> None:
    """Raises ValueError unless a U-Net with ``levels`` levels can halve a window.

    ``before`` is the number of halvings before the U-Net.

    Example:
      >>> check_halved(2000, 5)
    """
    whole = 2 ** (levels - 1 + before)
    first = f" after {before} earlier halvings" if before else ""
    if time % whole or time < whole:
        near = sorted({max(time // whole, 1) * whole, (time // whole + 1) * whole})
        raise ValueError(
            f"windows must have a multiple of {whole} samples for a U-Net of {levels} "
            f"widths, which halves them {levels - 1} times{first}, got {time}; use "
            f"windows of {' or '.join(map(str, near))} samples, or fewer widths."
        )


def check_heads(widths: Sequence[int], heads: int) -> None:
    """Raises ValueError unless ``heads`` divides the last width and 2 the first.

    Example:
      >>> check_heads((32, 64), 4)
    """
    if widths[-1] % heads:
        raise ValueError(
            f"widths must end in a multiple of heads={heads}, got {tuple(widths)}."
        )
    if widths[0] % 2:
        raise ValueError(
            f"widths must begin with an even number, for sines and cosines, got "
            f"{tuple(widths)}."
        )


SIDE = 3  # kernel size, in samples

GROUPS = 8

DTYPES = {"float32": jnp.float32, "bfloat16": jnp.bfloat16}


def norm(features: int, name: str, dtype) -> nn.GroupNorm:
    """Returns group norm, separate for each window, with float32 statistics."""
    return nn.GroupNorm(math.gcd(GROUPS, features), name=name, dtype=dtype)


class Convolution(nn.Module):
    """Zero-padded convolution over three samples."""

    features: int
    zero: bool = False  # whether weights start at zero

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
    """Residual block of two convolutions, with a scale and shift from the embedding.

    References:
      Ho et al., NeurIPS 2020, appendix B; Nichol and Dhariwal, ICML 2021, section 3,
      for the scale.
    """

    features: int

    @nn.compact
    def __call__(self, x, embedded):
        """``float[batch, time, d_in], float[batch, d] -> float[batch, time, f]``."""
        dtype = x.dtype
        y = nn.silu(norm(x.shape[-1], "norm_1", dtype)(x))
        y = Convolution(self.features, name="conv_1")(y)
        terms = nn.Dense(2 * self.features, name="told", dtype=dtype)(nn.silu(embedded))
        scale, shift = jnp.split(terms[:, None], 2, axis=-1)
        y = norm(self.features, "norm_2", dtype)(y) * (1 + scale) + shift
        y = Convolution(self.features, zero=True, name="conv_2")(nn.silu(y))
        if x.shape[-1] != self.features:
            x = nn.Dense(self.features, name="past", dtype=dtype)(x)
        return x + y


class Attention(nn.Module):
    """Transformer block: self-attention over samples, then a dense network.

    References:
      Vaswani et al., Attention is all you need, NeurIPS 2017.
    """

    heads: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, features]`` to the same; ``heads`` divides features."""
        batch, time, features = x.shape
        dense = lambda size, name, **options: nn.Dense(
            size, name=name, dtype=x.dtype, **options
        )
        zero = {"kernel_init": nn.initializers.zeros}
        y = dense(3 * features, "query_key_value")(norm(features, "norm_1", x.dtype)(x))
        parts = y.reshape(batch, time, 3, self.heads, features // self.heads)
        query, key, value = jnp.moveaxis(parts, 2, 0)
        seen = jax.nn.dot_product_attention(query, key, value)
        x = x + dense(features, "seen", **zero)(seen.reshape(batch, time, features))
        y = dense(2 * features, "inner")(norm(features, "norm_2", x.dtype)(x))
        return x + dense(features, "outer", **zero)(nn.silu(y))


class Halve(nn.Module):
    """Linear map of each pair of samples to one sample."""

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d] -> float[batch, time / 2, d]``."""
        batch, time, features = x.shape
        pairs = x.reshape(batch, time // 2, 2 * features)
        return nn.Dense(features, name="pairs", dtype=x.dtype)(pairs)


class Double(nn.Module):
    """Repetition of each sample, followed by a convolution."""

    features: int

    @nn.compact
    def __call__(self, x):
        """``float[batch, time, d] -> float[batch, 2 * time, features]``."""
        return Convolution(self.features, name="conv")(jnp.repeat(x, 2, axis=1))


def sinusoids(t, size: int):
    """Returns sines and cosines of steps, at frequencies from 1 down to 1/10,000.

    Args:
      t: ``int[batch]``.
      size: number of features, even.

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
