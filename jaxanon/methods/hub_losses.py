"""How badly PrivateHub's denoiser explains windows, step by step."""

import jax
import jax.numpy as jnp

from jaxanon.methods import acp, hub_sampling
from jaxanon.methods.hub_networks import AVERAGE, STATISTICS, Networks
from jaxanon.methods.hub_room import described
from jaxanon.models import conditions

SHARES = (0.1, 0.2, 0.4)  # Of the diffusion: near the end all windows are alike.
DRAWS = 4  # Of noise, whose losses are averaged.


def window_losses(nets: Networks, key, state, windows, labels) -> dict:
    """Mean squared errors of what is predicted of windows that are noised.

    Of the weights that sample, told all that training tells. What a denoiser was
    trained on it takes noise off better than off other windows, most so at early steps.

    Args:
      nets: ``Networks``.
      key: typed PRNG key of the noise.
      state: of PrivateHub.
      windows: ``float[batch, time, channels]``, in physical units.
      labels: ``int[batch]`` of each attribute; others than the spec's are of no
        account.

    Returns:
      ``float32[batch]`` by name of the step.

    References:
      Carlini et al., Extracting training data from diffusion models, USENIX Security
      2023, section 5; Matsumoto, Miura and Yanai, Membership inference attacks against
      diffusion models, 2023.
    """
    x0 = nets.bits.encode(hub_sampling.standardised(nets, windows))
    labels = {name: jnp.asarray(labels[name], jnp.int32) for name in nets.sizes}
    moments = conditions.moments(x0)
    told = described(nets, state.params[STATISTICS], labels, moments)
    last = nets.config.num_steps
    steps = sorted({max(1, round(share * last)) for share in SHARES})

    def draw(given):
        number, step = given
        t = jnp.broadcast_to(step, len(x0))
        own_key = jax.random.fold_in(key, number)
        x_t, wanted = acp.noised(nets, own_key, x0, t)
        return acp.errors(nets, state.params[AVERAGE], x_t, wanted, t, told)

    every = jnp.repeat(jnp.array(steps, jnp.int32), DRAWS)
    found = jax.lax.map(draw, (jnp.arange(len(every)), every))
    means = found.reshape(len(steps), DRAWS, -1).mean(axis=1)
    return {f"step {step} of {last}": means[i] for i, step in enumerate(steps)}
