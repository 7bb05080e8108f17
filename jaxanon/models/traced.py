"""Networks that a program applies many times, traced once for each shape."""

import functools

import jax


@functools.partial(jax.jit, static_argnums=0)
def apply(net, params, *inputs):
    """What a network of those parameters says of inputs.

    As ``net.apply({"params": params}, *inputs)``, which JAX traces line by line each
    time that it is called: a loss of four looks at a U-Net waits twice as long for its
    gradient to be traced as one whose looks share theirs. What is compiled is the same.

    Args:
      net: ``flax.linen.Module`` whose fields can be hashed; such as are equal share
        their traces. Of its variables it has ``params`` alone.
      params: those of it.
      inputs: arrays, or trees of them.

    Raises:
      ValueError: if a field of the module cannot be hashed, a list for example.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxanon.models.window_classifier import WindowClassifier
      >>> net, windows = WindowClassifier(3, filters=(4,)), jnp.zeros((2, 8, 5))
      >>> params = net.init(jax.random.key(0), windows)["params"]
      >>> logits, features = apply(net, params, windows)
      >>> logits.shape, features.shape
      ((2, 3), (2, 64))
    """
    return net.apply({"params": params}, *inputs)
