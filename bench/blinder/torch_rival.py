"""Blinder's client update in plain PyTorch, a rival of our meta-gradient."""

import statistics
import time

import torch
from torch.nn import functional


def _mlp(layers, x):
    for i, (weight, bias) in enumerate(layers):
        x = functional.linear(x, weight, bias)
        x = torch.relu(x) if i + 1 < len(layers) else x
    return x


def _encode(params, x):
    return _mlp(params["encoder"], x).chunk(2, -1)


def _sample(mean, log_variance, noise):
    return mean + (0.5 * log_variance).exp() * noise


def _cross_entropy(params, z, private):
    logits = _mlp(params["discriminators"], z)
    return -(private * torch.log_softmax(logits, -1)).sum(-1).mean()


def _vae_loss(params, batch, scale):
    mean, log_variance = _encode(params, batch["windows"])
    z = _sample(mean, log_variance, batch["noise"])
    conditioned = torch.cat([z, batch["private"], batch["public"]], -1)
    error = ((_mlp(params["decoder"], conditioned) - batch["windows"]) ** 2).sum(-1)
    kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(-1)
    alpha, beta, gamma = scale
    adversary = _cross_entropy(params, z, batch["private"])
    return alpha * error.mean() + beta * kl.mean() - gamma * adversary, z


def _detached(tree):
    return [(weight.detach(), bias.detach()) for weight, bias in tree]


def _descend(tree, grads, learning_rate):
    grads = iter(grads)
    return [
        (w - learning_rate * next(grads), b - learning_rate * next(grads))
        for w, b in tree
    ]


def meta_loss(params, support, query, grad_fn, *, scale, learning_rate, steps):
    """Returns one client's adapted losses as a differentiable value."""
    with torch.no_grad():
        mean, log_variance = _encode(params, support["windows"])
        z = _sample(mean, log_variance, support["noise"])
        conditioned = torch.cat([z, support["shadow"], support["public"]], -1)
        shadow = _encode(params, _mlp(params["decoder"], conditioned))
        means = torch.cat([mean, shadow[0]])
        z = _sample(means, torch.cat([log_variance, shadow[1]]), support["renoise"])
        private = torch.cat([support["private"], support["shadow"]])
    adversary = params["discriminators"]
    for _ in range(steps):
        loss = lambda tree: _cross_entropy({"discriminators": tree}, z, private)
        adversary = _descend(adversary, grad_fn(loss, adversary), learning_rate)
    fixed = _detached(adversary)
    num = len(params["encoder"])

    def inner(tree):
        both = {"encoder": tree[:num], "decoder": tree[num:], "discriminators": fixed}
        return _vae_loss(both, support, scale)[0]

    tree = [*params["encoder"], *params["decoder"]]
    tree = _descend(tree, grad_fn(inner, tree), learning_rate)
    adapted = {"encoder": tree[:num], "decoder": tree[num:], "discriminators": fixed}
    loss, z = _vae_loss(adapted, query, scale)
    final = {"discriminators": adversary}
    return loss + _cross_entropy(final, z.detach(), query["private"])


def _by_autograd(loss_fn, tree):
    leaves = [leaf for pair in tree for leaf in pair]
    return torch.autograd.grad(loss_fn(tree), leaves, create_graph=True)


def _by_func(loss_fn, tree):
    grads = torch.func.grad(loss_fn)(tree)
    return [leaf for pair in grads for leaf in pair]


def serial(params, support, query, **options):
    """Returns the mean gradient over clients, computed one after another."""
    leaves = [leaf for tree in params.values() for pair in tree for leaf in pair]
    for leaf in leaves:
        leaf.requires_grad_(True)
    clients = len(support["windows"])
    total = None
    for i in range(clients):
        one = lambda batch, i=i: {name: leaf[i] for name, leaf in batch.items()}
        loss = meta_loss(params, one(support), one(query), _by_autograd, **options)
        grads = torch.autograd.grad(loss, leaves)
        total = grads if total is None else [a + b for a, b in zip(total, grads)]  # noqa: B905
    return [leaf / clients for leaf in total]


def vmapped(params, support, query, **options):
    """Returns the mean gradient over clients by ``torch.func.vmap(grad)``."""

    def loss(params, support, query):
        return meta_loss(params, support, query, _by_func, **options)

    grads = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(params, support, query)
    return [leaf.mean(0) for tree in grads.values() for pair in tree for leaf in pair]


RIVALS = {"PyTorch, one after another": serial, "torch.func.vmap": vmapped}


def to_torch(params, batches, device):
    """Converts our parameters and batches to ``(params, batches)`` of the rival."""
    tensor = lambda leaf: torch.tensor(leaf, device=device)

    def layers(tree):
        dense = tree["MultiLayer_0"]
        pairs = (dense[f"Dense_{i}"] for i in range(len(dense)))
        return [(tensor(p["kernel"].T.copy()), tensor(p["bias"])) for p in pairs]

    def batch(one):
        clients, rows = one.windows.shape[:2]
        flat = one.windows.swapaxes(-1, -2).reshape(clients, rows, -1)
        arrays = {
            "windows": flat,
            "public": one.public,
            "private": one.private[0],
            "noise": one.noise,
            "shadow": one.shadow[0],
            "renoise": one.renoise,
        }
        return {name: tensor(leaf.copy()) for name, leaf in arrays.items()}

    ours = {
        "encoder": layers(params["encoder"]),
        "decoder": layers(params["decoder"]),
        "discriminators": layers(params["discriminators"][0]),
    }
    return ours, [batch(one) for one in batches]


def measure(rival, params, batches, *, repeats, **options):
    """Returns seconds of a cohort's gradient, and the encoder's first kernel of it."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    params, (support, query) = to_torch(params, batches, device)
    took = []
    for _ in range(repeats + 1):  # The first one is a warm-up.
        start = time.perf_counter()
        grads = RIVALS[rival](params, support, query, **options)
        if device == "cuda":
            torch.cuda.synchronize()
        took.append(time.perf_counter() - start)
    return statistics.median(took[1:]), grads[0].detach().cpu().numpy().T
