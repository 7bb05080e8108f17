"""Networks for images: ResNet for CIFAR, and VGG."""

import math
from collections.abc import Sequence

import jax.numpy as jnp
from flax import linen as nn

SIDE = 3  # kernel size
GROUPS = 8
POOL = 0  # Stands for a pooling layer in a list of widths.
VGG16 = (
    *(64, 64, POOL, 128, 128, POOL, 256, 256, 256, POOL),
    *(512, 512, 512, POOL, 512, 512, 512, POOL),
)


class Convolution(nn.Module):
    """Convolution of 3 x 3 pixels, written as one matrix product, then group norm.

    Group norm has the parameters of batch norm and normalises each image separately.
    Batch norm would mix the examples of a batch, whose gradients are clipped one by
    one, and its running means would reveal statistics of clients' images.

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
    """Gathers every ``stride``-th pixel with its eight neighbours, zero-padded.

    ``float[B, h, w, d] -> float[B, ceil(h / stride), ceil(w / stride), 9 * d]``, in the
    layout of a kernel ``float[3, 3, d, features]``.
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
    """Residual network with blocks of two convolutions; stages halve the image.

    Shortcuts have no parameters: where the image shrinks, they take every second pixel
    and zeros for new channels. ResNet-32 has 5 blocks in each of 3 stages.

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
                shortcut = x[:, ::stride, ::stride]
                x = nn.relu(y + jnp.pad(shortcut, ((0, 0), (0, 0), (0, 0), (0, more))))
        return nn.Dense(self.outputs, name="dense_1")(x.mean(axis=(1, 2)))


class VGG(nn.Module):
    """VGG with group norm: convolutions and max pooling, then one dense layer.

    References:
      Simonyan, Zisserman, arXiv 1409.1556, configuration D, with the single dense layer
      that is common for 32 x 32 pixels.
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
    """Reshapes pixels in row-major order to ``float[B, side, side, d]``."""
    batch, pixels, channels = windows.shape
    side = math.isqrt(pixels)
    return windows.reshape(batch, side, side, channels)


def check_pixels(kind: str, time: int) -> None:
    """Raises ValueError unless ``time`` pixels form a square image for ``kind``."""
    side = math.isqrt(time)
    if side**2 != time or (kind == "vgg16" and side % 32):
        bound = "the square of a multiple of 32" if kind == "vgg16" else "a square"
        raise ValueError(
            f"time must be {bound} for {kind}, which treats windows as square images, "
            f"got {time}; use windows of 1024 samples or another model."
        )
