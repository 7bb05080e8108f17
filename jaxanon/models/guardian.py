"""GEN's networks: an estimator of all attributes, and the guardian that rewrites."""

from collections.abc import Sequence

from flax import linen as nn

from jaxanon.models.layers import flatten, unflatten
from jaxanon.models.planes import PlaneConv, drop, largest, logits, noise, planes

LEAST = 30  # Samples of a window that leave one to the last convolution.


class Estimator(nn.Module):
    """A window to the logits of every attribute, by one trunk with a head for each.

    Convolutions over time, the same for each channel and never across them; dense
    layers on the filters of each sample; the largest of every 2, then 3 samples;
    dropout. ReLU is not published, and is ours. With the widths of MotionSense's 12
    channels of 50 samples, 4 activities and gender it counts 410,905 parameters.

    References:
      Malekzadeh et al., Protecting Sensory Data against Sensitive Inferences, W-P2DS
      2018, section 4; the layers are those of the released program.
    """

    classes: Sequence[tuple[str, int]]  # attribute and its number of classes
    filters: Sequence[int] = (50, 40, 20)
    hidden: int = 400

    @nn.compact
    def __call__(self, windows, key=None):
        """Logits of each attribute, not normalised.

        Args:
          windows: ``float[batch, time, channels]``, at least 30 samples.
          key: typed key for dropout; ``None`` drops nothing.

        Returns:
          Dict of ``float[batch, classes]``.
        """
        first, second, third = self.filters
        conv = lambda features, size, same=False: PlaneConv(features, (1, size), same)
        batch, time, channels = windows.shape
        rows = [(time - 4) // 2, ((time - 4) // 2 - 4) // 3]
        rows.append(rows[1] - 2)
        pairs = zip(rows, self.filters, strict=True)
        sizes = [batch * channels * samples * filters for samples, filters in pairs]
        dropped = iter(noise(key, [*sizes, batch * self.hidden]))
        x = nn.relu(conv(first, 5)(planes(windows)))
        x = nn.relu(conv(first, 3, True)(x))
        x = drop(largest(nn.relu(_dense(first)(x)), 2), next(dropped), 0.2)
        x = nn.relu(_dense(second)(nn.relu(conv(second, 5)(x))))
        x = drop(largest(x, 3), next(dropped), 0.2)
        x = drop(nn.relu(conv(third, 3)(x)), next(dropped), 0.2)
        x = nn.relu(_dense(self.hidden)(x.reshape(len(x), -1)))
        x = drop(x, next(dropped), 0.4)
        return {name: logits(x, num) for name, num in self.classes}


class Guardian(nn.Module):
    """A window to one like it through dense layers, the narrowest an eighth of it.

    The first and the last layer are linear, those between them have ReLU.

    Example:
      >>> import jax
      >>> import jax.numpy as jnp
      >>> net = Guardian()
      >>> sizes = jax.eval_shape(net.init, jax.random.key(0), jnp.zeros((1, 50, 12)))
      >>> sum(leaf.size for leaf in jax.tree.leaves(sizes))
      834675
    """

    hidden: Sequence[int] | None = None  # None: 1/2, 1/4, 1/8, 1/4, 1/2 of a window.

    @nn.compact
    def __call__(self, windows):
        """``float[batch, time, channels]`` to the same."""
        x = flatten(windows)
        size = x.shape[1]
        hidden = self.hidden
        if hidden is None:
            hidden = [max(1, size // share) for share in (2, 4, 8, 4, 2)]
        x = _dense(size)(x)
        for units in hidden:
            x = nn.relu(_dense(units)(x))
        return unflatten(_dense(size)(x), *windows.shape[1:])


def _dense(units):
    return nn.Dense(units, kernel_init=nn.initializers.glorot_uniform())
