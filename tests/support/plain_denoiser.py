"""A two-layer denoiser in place of the U-Net, which takes seconds to compile.

It tests the code around the network; ``tests/models`` test the U-Net.
"""

import contextlib
from collections.abc import Sequence
from unittest import mock

import jax.numpy as jnp
from flax import linen as nn

from jaxanon.methods.guided_diffusion import cloak, privdiffuser
from jaxanon.methods.privatehub import networks


class Denoiser(nn.Module):
    """Denoiser with all of the U-Net's inputs, each of which affects its output."""

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
    """Builds diffusion methods with this denoiser while the context is active."""
    with contextlib.ExitStack() as patched:
        for module in (networks, cloak, privdiffuser):
            patched.enter_context(mock.patch.object(module, "UNet", Denoiser))
        yield
