"""Networks for photographs: He's residual network for CIFAR, and VGG's."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

SIDE = 3  # Of what a convolution sees.
GROUPS = 8
POOL = 0  # In place of a width.
VGG16 = (
    *(64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL),
    *(512, 512, 512, POOL, 512, 512, 512, POOL),
)


class Convolution(nn.Module):
    """3 x 3, as one product of neighbouring pixels and a matrix, then group norm.

    Groups of channels are normalised in each image alone. Batch norm would mix a lot's
    examples, whose gradients are clipped one by one, and its running means would be
    of clients' images, and leave them. It has the same parameters to learn.

    References:
      Wu, He, Group normalization, ECCV 2018; Hsieh et al., The non-IID data quagmire of
      decentralized machine learning, ICML 2020, for federations.
    """

    features: int
    stride: int = 1

    @nn.compact
    def __call__(self, x):
        """``float[B, h, w, d_in] -> float[B, ceil(h / stride), ..., features]``."""
        shape = (SIDE**2 * x.shape[-1], self.features)
        kernel = self.param("kernel", nn.initializers.he_normal(), shape)
        groups = math.gcd(GROUPS, self.features)
        return nn.GroupNorm(groups, name="norm")(
            gather_neighbors(x, self.stride) @ kernel
        )


def gather_neighbors(x, stride: int = 1):
    """Every ``stride``-th pixel with the eight around it, zero beyond the border.

    ``float[B, h, w, d]`` to ``float[B, ceil(h / stride), ceil(w / stride), 9 * d]``;
    row by row, as a kernel ``float[3, 3, d, features]`` is laid out.
    """
    height, width = x.shape[1:3]
    padded = jnp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    parts = [
        padded[:, i : i + height : stride, j : j + width : stride]
        for i in range(SIDE)
        for j in range(SIDE)
    ]
    return jnp.concatenate(parts, axis=-1)


class ResNet(nn.Module):
    """Blocks of two convolutions with a way past them; stages halve the image.

    Past a block goes the image itself, every second pixel and zeros for new channels
    where it shrinks, so that the way has no parameters. ResNet-32 has 5 blocks in each
    of 3 stages.

    References:
      He, Zhang, Ren, Sun, Deep residual learning for image recognition, CVPR 2016,
      section 4.2.
    """

    outputs: int
    stages: Sequence[int] = (16, 32, 64)
    blocks: int = 5

    @nn.compact
    def __call__(self, windows):
        """``float[batch, pixels, channels] -> float[batch, outputs]``."""
        number = iter(range(1, 10**6))
        conv = lambda features, stride=1: Convolution(
            features, stride, name=f"conv_{next(number)}"
        )
        x = nn.relu(conv(self.stages[0])(to_image(windows)))
        for features in self.stages:
            for _ in range(self.blocks):
                more = features - x.shape[-1]
                stride = 2 if more else 1
                y = nn.relu(conv(features, stride)(x))
                y = conv(features)(y)
                past = x[:, ::stride, ::stride]
                x = nn.relu(y + jnp.pad(past, ((0, 0), (0, 0), (0, 0), (0, more))))
        return nn.Dense(self.outputs, name="dense_1")(x.mean(axis=(1, 2)))


class VGG(nn.Module):
    """Convolutions, of which a pool keeps the largest of each four; then one layer.

    References:
      Simonyan, Zisserman, arXiv 1409.1556, configuration D; for 32 x 32 pixels it ends
      in one dense layer, as is usual, and its convolutions are normalised.
    """

    outputs: int
    widths: Sequence[int] = VGG16

    @nn.compact
    def __call__(self, windows):
        """``float[batch, pixels, channels] -> float[batch, outputs]``."""
        x, number = to_image(windows), 0
        for width in self.widths:
            if width == POOL:
                batch, height, _, channels = x.shape
                half = height // 2
                x = x.reshape(batch, half, 2, half, 2, channels).max(axis=(2, 4))
            else:
                number += 1
                x = nn.relu(Convolution(width, name=f"conv_{number}")(x))
        return nn.Dense(self.outputs, name="dense_1")(x.reshape(len(x), -1))


def to_image(windows):
    """Pixels row by row as the image that they are, ``float[B, side, side, d]``."""
    batch, pixels, channels = windows.shape
    side = math.isqrt(pixels)
    return windows.reshape(batch, side, side, channels)


def check_pixels(kind: str, time: int) -> None:
    """Raises ValueError unless so many pixels are a square that ``kind`` can halve."""
    side = math.isqrt(time)
    if side**2 != time or (kind == "vgg16" and side % 32):
        wanted = (
            "a square of 32, 64, ... pixels a side" if kind == "vgg16" else "square"
        )
        raise ValueError(
            f"{kind} sees a window as an image, pixel by pixel, so its time must be "
            f"{wanted}, such as 1024; got {time}. Choose another model."
        )
