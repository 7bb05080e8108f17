"""A client's noisy steps: random samples, clipped examples, one sum's noise."""

import dataclasses
import math

import jax
import jax.numpy as jnp

from jaxanon import kernels
from jaxanon.federated.personal import Rounds
from jaxanon.kernels.checks import whole
from jaxanon.kernels.setting_checks import finite
from jaxanon.privacy import SampledGaussian
from jaxanon.privacy.sampled import RARELY, beyond


@dataclasses.dataclass(frozen=True, kw_only=True)
class Lots:
    """Random samples of a client's rows, the lots of DP-SGD.

    Every row is in every lot with the same probability, whatever the others do, so
    lots differ in size; steps are as long as if they did not. All of it is public, and
    the same for clients with many rows and with few: how many there are is private.

    Attributes:
      sampling_probability: q in (0, 1].
      size: what clipped sums are divided by, > 0: q times as many rows as a client is
        thought to have.
      capacity: most rows of a lot, for arrays have a size; where more are drawn, some
        are left out at random. None takes so many for ``records`` rows that it happens
        once in 10^14 lots at most.
      records: rows that no client has more of; None, with ``capacity``, is what lots
        are drawn from.

    Raises:
      TypeError: for what is no number, ``capacity`` or ``records`` that are not whole.
      ValueError: for a number out of its range, or neither ``capacity`` nor
        ``records``.

    Example:
      >>> Lots(sampling_probability=0.1, size=20.0, records=200).largest
      67
    """

    sampling_probability: float
    size: float
    capacity: int | None = None
    records: int | None = None

    def __post_init__(self):
        probability = self.sampling_probability
        finite(zero=False, size=self.size, sampling_probability=probability)
        if probability > 1:
            raise ValueError(
                f"sampling_probability must be in (0, 1], got {probability!r}."
            )
        for name in ("capacity", "records"):
            value = getattr(self, name)
            if value is not None:
                whole(name, value, least=1)
        if self.capacity is None and self.records is None:
            raise ValueError(
                "records must be given, the most rows that a client has, or capacity, "
                "the most that a lot has."
            )

    @property
    def largest(self) -> int:
        """The capacity, as given or as it follows from ``records``."""
        if self.capacity is not None or self.records is None:
            return self.capacity or 0
        # Bernstein's bound of a binomial's tail, at e^-32.3 = 1e-14.
        mean = self.sampling_probability * self.records
        spread = mean * (1 - self.sampling_probability)
        more = 32.3 / 3 + math.sqrt((32.3 / 3) ** 2 + 2 * 32.3 * spread)
        return min(self.records, math.ceil(mean + more))


def sampled_gaussian(
    lots: Lots, noise_multiplier: float, steps: int
) -> SampledGaussian:
    """What so many noisy steps on lots cost, for ``jaxanon.privacy.epsilon_spent``.

    Args:
      lots: ``Lots`` with ``records``, where a lot cannot hold all of them.
      noise_multiplier: z > 0 of all groups together.
      steps: of all rounds together, those that a client sat out too: that it did is
        no secret.

    Raises:
      ValueError: for lots that leave rows out and don't say of how many, or leave them
        out so often that it tells of how many there are.

    Example:
      >>> lots = Lots(sampling_probability=0.1, size=20.0, records=200)
      >>> sampled_gaussian(lots, 1.0, 50)
      SampledGaussian(noise_multiplier=1.0, sampling_probability=0.1, steps=50, ...)
    """
    if lots.records is None:
        raise ValueError(
            f"lots hold {lots.largest} rows at most, and what leaving out others "
            "costs depends on how many there are; give their records."
        )
    bounded = lots.largest < lots.records
    release = SampledGaussian(
        noise_multiplier=noise_multiplier,
        sampling_probability=lots.sampling_probability,
        steps=steps,
        capacity=lots.largest if bounded else None,
        records=lots.records if bounded else None,
    )
    # What cutting costs does not grow with the rows: for a client with some of them it
    # may be more than for one with all.
    if beyond(release) > RARELY:
        raise ValueError(
            f"lots of {lots.largest} rows at most are cut with probability up to "
            f"{beyond(release):.1e}, and what that costs depends on how many rows each "
            "client has; leave capacity out, or take a larger one."
        )
    return release


def draw_lot(key, mask, lots: Lots):
    """Which rows a step takes.

    Args:
      key: typed PRNG key.
      mask: ``bool[n]``, False where a row is padding.
      lots: ``Lots``.

    Returns:
      ``int32[k]``, rows, and ``bool[k]``, False where there is none; k is
      ``lots.largest``, or n where that is less.

    Raises:
      ValueError: for a mask that is longer than ``lots.records``.

    Example:
      >>> lots = Lots(sampling_probability=1.0, size=2.0, capacity=3)
      >>> _, real = draw_lot(jax.random.key(0), jnp.array([True, False, True]), lots)
      >>> real
      Array([ True,  True, False], dtype=bool)
    """
    if lots.records is not None and len(mask) > lots.records:
        raise ValueError(
            f"there is room for {len(mask)} rows of a client, and records says "
            f"{lots.records} at most; give records that hold all, or cut off padding."
        )
    draws = jax.random.uniform(key, mask.shape)
    draws = jnp.where(mask, draws, jnp.inf)
    capacity = min(lots.largest, len(mask))
    # Of those below q the least are a sample of them that looks at nothing else.
    index = jnp.argsort(draws)[:capacity].astype(jnp.int32)
    return index, draws[index] < lots.sampling_probability


def step_keys(key, number):
    """Keys of a noisy step: two of its lot, one of its noise."""
    lot_key, loss_key, noise_key = jax.random.split(jax.random.fold_in(key, number), 3)
    return (lot_key, loss_key), noise_key


def clipped_lot(loss_fn, keys, params, rows, mask, lots, max_norms, groups=None):
    """``(BoundedSum, mean loss)`` of a lot's clipped gradients, before the noise.

    Args:
      loss_fn, params, rows, mask, lots, max_norms, groups: as ``descend_privately``.
      keys: of ``step_keys``, of the lot.
    """
    lot_key, loss_key = keys
    index, real = draw_lot(lot_key, mask, lots)
    lot = jax.tree.map(lambda leaf: leaf[index], rows)
    total, info = kernels.clipped_gradient_sum(
        lambda params, lot: loss_fn(params, lot, loss_key),
        params,
        lot,
        max_norms,
        groups=groups,
        mask=real,
    )
    return total, jnp.sum(info.losses) / jnp.maximum(jnp.sum(real), 1)


def lot_bytes(loss_fn, key, params, rows, lots: Lots) -> int:
    """Bytes of what a step holds of the gradients of a lot's examples.

    Args:
      loss_fn, key, params, rows, lots: as ``descend_privately`` takes them.

    Example:
      >>> lots = Lots(sampling_probability=0.5, size=4.0, records=8)
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


def descend_privately(
    loss_fn,
    key,
    params,
    rows,
    mask,
    *,
    lots: Lots,
    step_size,
    num_steps: int,
    max_norms,
    noise_multipliers,
    groups=None,
):
    """Takes noisy steps on one client's rows: DP-SGD, and nothing else of the rows.

    Each step is a Gaussian mechanism over a Poisson sample, whose noise multiplier is
    that of all groups together; what comes out may leave the client, be kept or start
    another call, as long as all that ever depends on the rows is made so.

    Args:
      loss_fn: ``(params, batch, key) -> float[B]``, one loss per row, of that row and
        no other; its key is one for the whole lot.
      key: typed PRNG key.
      params: tree of arrays.
      rows: tree of arrays ``[n, ...]``.
      mask: ``bool[n]``.
      lots: ``Lots``.
      step_size: ``float[]``, may be traced.
      num_steps: a Python int >= 1.
      max_norms, groups: as ``jaxanon.kernels.clipped_gradient_sum`` takes them.
      noise_multipliers: as ``jaxanon.kernels.add_noise_to_sum`` takes them; 0 adds no
        noise, and guarantees nothing.

    Returns:
      The trained params, and ``float[num_steps]``, the mean loss of each lot before its
      step, 0 of an empty one: of a client's own rows, and not covered by any guarantee.

    Raises:
      TypeError: for ``num_steps`` that are no whole number, and as those kernels.
      ValueError: for ``num_steps`` below 1, and as those kernels.

    Example:
      >>> loss_fn = lambda w, x, key: w * x  # The gradient of each row is x.
      >>> w, _ = descend_privately(
      ...     loss_fn, jax.random.key(0), jnp.zeros(()), jnp.array([8.0, -1.0]),
      ...     jnp.ones(2, bool), step_size=1.0, num_steps=1, max_norms=3.0,
      ...     noise_multipliers=0.0,
      ...     lots=Lots(sampling_probability=1.0, size=2.0, records=2))
      >>> w
      Array(-1., dtype=float32)

    References:
      Abadi et al., Deep learning with differential privacy, CCS 2016, algorithm 1;
      Atlas, equation 3.4.
    """
    whole("num_steps", num_steps, least=1)

    def step(params, number):
        lot_key, noise_key = step_keys(key, number)
        total, loss = clipped_lot(
            loss_fn, lot_key, params, rows, mask, lots, max_norms, groups
        )
        noisy = kernels.add_noise_to_sum(noise_key, total, noise_multipliers)
        down = lambda p, g: p - (step_size * g / lots.size).astype(p.dtype)
        return jax.tree.map(down, params, noisy), loss

    return jax.lax.scan(step, params, jnp.arange(num_steps))


def alike(rounds: Rounds | None) -> Rounds:
    """Rounds of clients whose noise hides how many rows they have.

    Args:
      rounds: ``Rounds``; None is the default.

    Raises:
      ValueError: if they weigh clients by their rows.

    Example:
      >>> alike(None).weighting
      'clients'
    """
    if rounds is None:
        return Rounds(weighting="clients")
    if rounds.weighting != "clients":
        raise ValueError(
            f"weighting must be 'clients', got {rounds.weighting!r}: numbers of rows "
            "are private, and weights would tell them."
        )
    return rounds
