"""DP-SGD steps of a client: Poisson sampling, clipping and noise."""

import fractions
import math

import jax
import jax.numpy as jnp
import optax

from jaxanon import kernels
from jaxanon.federated.engine.algorithm import RoundConfig, RoundOptions
from jaxanon.federated.engine.local import optimizer_of
from jaxanon.kernels.checks import whole
from jaxanon.privacy.poisson_sampling import PoissonSampling


def poisson_sample(key, mask, lots: PoissonSampling):
    """Samples the rows of a step.

    A row is drawn if 64 random bits are below ``floor(2^64 q)``, so its probability
    is at most q, and lower by less than 2^-64.

    Args:
      key: typed PRNG key.
      mask: ``bool[n]``, False where a row is padding.
      lots: ``PoissonSampling``.

    Returns:
      Row indices ``int32[k]`` and ``bool[k]``, False for unused entries; k is the
      minimum of ``lots.largest`` and n.

    Raises:
      ValueError: for a mask longer than ``lots.max_examples``.

    Example:
      >>> lots = PoissonSampling(
      ...         sampling_probability=1.0, expected_batch_size=2.0, max_batch_size=3)
      >>> _, real = poisson_sample(
      ...     jax.random.key(0), jnp.array([True, False, True]), lots
      ... )
      >>> real
      Array([ True,  True, False], dtype=bool)
    """
    if lots.max_examples is not None and len(mask) > lots.max_examples:
        raise ValueError(
            f"mask must have at most max_examples = {lots.max_examples} entries, got "
            f"{len(mask)}; increase max_examples or remove padding."
        )
    words = jax.random.bits(key, (2, *mask.shape), jnp.uint32)
    drawn = mask & below_probability(words, lots.sampling_probability)
    capacity = min(lots.largest, len(mask))
    # The smallest draws are a data-independent sample of the drawn rows.
    last = jnp.uint32(1 << 31)
    order = jnp.where(drawn, words[0] >> 1, last)
    index = jnp.argsort(order)[:capacity].astype(jnp.int32)
    return index, drawn[index]


def below_probability(words, probability: float):
    """Returns whether 64 random bits are below a probability, as a fraction of 2^64.

    Args:
      words: ``uint32[2, ...]``, the upper and lower words.
      probability: q in [0, 1], a Python float.

    Returns:
      ``bool[...]``; True for ``floor(2^64 q)`` of the 2^64 pairs of words.

    Example:
      >>> words = jnp.array([[0, 1, 1], [7, 0, 7]], jnp.uint32)
      >>> below_probability(words, (2**32 + 7) / 2**64)
      Array([ True,  True, False], dtype=bool)
    """
    high, low = divmod(
        math.floor(fractions.Fraction(float(probability)) * 2**64), 2**32
    )
    if high >= 2**32:
        return jnp.ones(words.shape[1:], bool)
    high, low = jnp.uint32(high), jnp.uint32(low)
    return (words[0] < high) | ((words[0] == high) & (words[1] < low))


def step_keys(key, number):
    """Returns two keys for the batch and one for the noise of a step."""
    lot_key, loss_key, noise_key = jax.random.split(jax.random.fold_in(key, number), 3)
    return (lot_key, loss_key), noise_key


def clipped_lot(loss_fn, keys, params, rows, mask, lots, clip_norms, groups=None):
    """Returns ``(BoundedSum, mean loss)`` of a batch's clipped gradients without noise.

    Args:
      loss_fn, params, rows, mask, lots, clip_norms, groups: see ``local_dp_sgd``.
      keys: keys for the batch from ``step_keys``.
    """
    lot_key, loss_key = keys
    index, real = poisson_sample(lot_key, mask, lots)
    lot = jax.tree.map(lambda leaf: leaf[index], rows)
    total, info = kernels.clipped_gradient_sum(
        lambda params, lot: loss_fn(params, lot, loss_key),
        params,
        lot,
        clip_norms,
        groups=groups,
        mask=real,
    )
    return total, jnp.sum(info.losses) / jnp.maximum(jnp.sum(real), 1)


def lot_bytes(loss_fn, key, params, rows, lots: PoissonSampling) -> int:
    """Returns the bytes of per-example gradients that a step holds.

    Args:
      loss_fn, key, params, rows, lots: see ``local_dp_sgd``.

    Example:
      >>> lots = PoissonSampling(
      ...         sampling_probability=0.5, expected_batch_size=4.0, max_examples=8)
      >>> square = lambda w, x, key: jnp.sum((w[None] - x) ** 2, axis=1)
      >>> lot_bytes(
      ...     square, jax.random.key(0), jnp.zeros(3), jnp.zeros((8, 3)), lots) // 8
      12
    """

    def lot_of(leaf):
        size = min(lots.largest, len(leaf))
        return jax.ShapeDtypeStruct((size, *leaf.shape[1:]), leaf.dtype)

    return kernels.clipped_gradient_bytes(
        lambda params, lot: loss_fn(params, lot, key),
        params,
        jax.tree.map(lot_of, rows),
    )


def local_dp_sgd(
    loss_fn,
    key,
    params,
    rows,
    mask,
    *,
    lots: PoissonSampling,
    learning_rate=None,
    num_steps: int,
    clip_norms,
    noise_multipliers,
    groups=None,
    optimizer=None,
):
    """Takes DP-SGD steps on one client's rows.

    Each step is a Gaussian mechanism over a Poisson sample with the joint noise
    multiplier of all groups. The result may be sent, stored or used in further calls,
    if the rows are accessed only through such steps.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row, which must depend
        on that row only. The key is shared by the batch.
      key: typed PRNG key.
      params: tree of arrays.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      lots: ``PoissonSampling``.
      learning_rate: ``float[]`` of SGD. May be traced; not used with ``optimizer``.
      num_steps: Python int >= 1.
      clip_norms, groups: see ``jaxanon.kernels.clipped_gradient_sum``.
      noise_multipliers: see ``jaxanon.kernels.add_noise_to_sum``; 0 adds no noise and
        gives no guarantee.
      optimizer: Optax transformation of the noisy mean gradient; None is SGD. It
        processes released values only, so the guarantee is the same.

    Returns:
      The trained params, and the mean loss of each batch before its step,
      ``float[num_steps]`` (0 for an empty batch). The guarantee does not cover the
      losses.

    Raises:
      TypeError: for ``num_steps`` that is not an integer; also the conditions of the
        kernels.
      ValueError: for ``num_steps`` below 1; also the conditions of the kernels.

    Example:
      >>> loss_fn = lambda w, x, key: w * x  # The gradient of each row is x.
      >>> w, _ = local_dp_sgd(
      ...     loss_fn, jax.random.key(0), jnp.zeros(()), jnp.array([8.0, -1.0]),
      ...     jnp.ones(2, bool), learning_rate=1.0, num_steps=1, clip_norms=3.0,
      ...     noise_multipliers=0.0,
      ...     lots=PoissonSampling(
      ...         sampling_probability=1.0, expected_batch_size=2.0, max_examples=2))
      >>> w
      Array(-1., dtype=float32)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      Atlas, equation 3.4.
    """
    whole("num_steps", num_steps, least=1)
    optimizer = optimizer or optimizer_of(None, {"learning_rate": learning_rate})

    def step(carry, number):
        params, opt_state = carry
        lot_key, noise_key = step_keys(key, number)
        total, loss = clipped_lot(
            loss_fn, lot_key, params, rows, mask, lots, clip_norms, groups
        )
        noisy = kernels.add_noise_to_sum(noise_key, total, noise_multipliers)
        mean = jax.tree.map(lambda g: g / lots.expected_batch_size, noisy)
        updates, opt_state = optimizer.update(mean, opt_state, params)
        return (optax.apply_updates(params, updates), opt_state), loss

    start = params, optimizer.init(params)
    (params, _), losses = jax.lax.scan(step, start, jnp.arange(num_steps))
    return params, losses


def alike(options: RoundOptions) -> RoundConfig:
    """Returns a config with equal client weights, which hides numbers of rows.

    Args:
      options: see ``RoundConfig``.

    Raises:
      ValueError: if clients are weighted by their rows.

    Example:
      >>> alike({}).weighting
      'clients'
    """
    rounds = RoundConfig(**{"weighting": "clients"} | options)
    if rounds.weighting != "clients":
        raise ValueError(
            f"weighting must be 'clients', got {rounds.weighting!r}; weights would "
            "reveal the private numbers of rows."
        )
    return rounds
