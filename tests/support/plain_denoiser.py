"""A denoiser of two layers in place of the U-Net, which takes seconds to compile.

For tests of what is done around it; ``tests/models`` have the U-Net's own.
"""

import contextlib
from collections.abc import Sequence
from unittest import mock

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.methods.guided_diffusion import cloak, privdiffuser
from jaxanon.methods.privatehub import networks


class Denoiser(nn.Module):
    """Is told all that a U-Net is, and makes something of each part."""

    sizes: tuple[tuple[str, int], ...]
    widths: Sequence[int] = ()
    blocks: int = 1
    heads: int = 1
    dtype: str = "float32"

    @nn.compact
    def __call__(self, x, t, condition):
        steps = jnp.broadcast_to(jnp.asarray(t), x.shape[:1])[:, None] / 20
        classes = [condition.classes[name][:, None] for name, _ in self.sizes]
        features = jnp.where(condition.known[:, None], condition.features, 0)
        told = jnp.concatenate([steps, *classes, features], axis=1).astype(x.dtype)
        hidden = nn.Dense(16)(x) + nn.Dense(16)(told)[:, None]
        return nn.Dense(x.shape[-1])(nn.tanh(hidden))


@contextlib.contextmanager
def plain_denoiser():
    """As long as it is entered, diffusion methods are built with it."""
    with contextlib.ExitStack() as patched:
        for module in (networks, cloak, privdiffuser):
            patched.enter_context(mock.patch.object(module, "UNet", Denoiser))
        yield
