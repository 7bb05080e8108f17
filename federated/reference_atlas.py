"""Atlas without noise as the chapter's loops: for readers, and for the tests."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxanon.federated.reference import batches_of, mean_loss, real_rows


def atlas(
    key,
    params,
    loss_fn,
    clients,
    num_rounds,
    options,
    *,
    step_size,
    mask_step_size,
    threshold,
    first_score,
):
    """What the server has, and of each client its weights, masks and shared layers."""
    count = len(clients.mask)
    first = np.log(first_score / (1 - first_score))
    masks = [jax.tree.map(lambda w: jnp.full_like(w, first), params)] * count
    own, shared = [params] * count, [dict.fromkeys(params, True)] * count
    for t in range(num_rounds):
        _, client_key = jax.random.split(jax.random.fold_in(key, t))
        for c in range(count):
            rows, size = real_rows(clients, c)
            index, loss_key = batches_of(
                jax.random.fold_in(client_key, c), size, **options
            )
            mine = {m: params[m] if shared[c][m] else own[c][m] for m in params}
            for step, chosen in enumerate(index):
                batch = jax.tree.map(lambda leaf, i=chosen: leaf[i], rows)
                step_key = jax.random.fold_in(loss_key, step)
                # Equation 3.1, in the sigmoid, and the product with the weights.
                gate = jax.tree.map(lambda e: 1 / (1 + jnp.exp(-e)), masks[c])
                binary = jax.tree.map(lambda g: jnp.where(g < threshold, 0, 1), gate)
                weights = jax.tree.map(jnp.multiply, mine, binary)
                grads = jax.grad(mean_loss, argnums=1)(
                    loss_fn, weights, batch, step_key
                )
                # Equation 3.3: the sigmoid's slope, times the loss by the binary mask.
                masks[c] = jax.tree.map(
                    lambda e, g, w, d: e - mask_step_size * g * (1 - g) * w * d,
                    *(masks[c], gate, mine, grads),
                )
                mine = jax.tree.map(
                    lambda w, b, d: w - step_size * b * d, mine, binary, grads
                )
            own[c] = mine
            shared[c] = {m: _score(masks[c][m]) >= threshold for m in params}
        after = {}
        for m in params:  # Equation 3.10.
            senders = [own[c][m] for c in range(count) if shared[c][m]]
            mean = lambda *leaves: sum(leaves) / len(leaves)
            after[m] = jax.tree.map(mean, *senders) if senders else params[m]
        params = after
    return params, own, masks, shared


def _score(layer):
    gates = [1 / (1 + np.exp(-np.ravel(leaf))) for leaf in jax.tree.leaves(layer)]
    return np.concatenate(gates).mean()
