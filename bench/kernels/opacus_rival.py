"""Opacus on the MLP of the clipped gradient sums: hooks and ghost clipping."""

import copy
import statistics
import time
import warnings

import numpy as np
import torch
from opacus import grad_sample, optimizers
from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping


def measure(params, x, y, max_norm, repeats):
    """Yields (name, seconds per step, first kernel's gradient) of each mode."""
    warnings.filterwarnings("ignore", message="Full backward hook is firing")
    model = perceptron(params)
    x, y = torch.tensor(x), torch.tensor(y)
    settings = {"max_grad_norm": max_norm, "loss_reduction": "sum"}
    modes = {
        "Opacus's hooks": (
            grad_sample.GradSampleModule(copy.deepcopy(model), loss_reduction="sum"),
            optimizers.DPOptimizer,
        ),
        "Opacus's ghost clipping": (
            grad_sample.GradSampleModuleFastGradientClipping(
                copy.deepcopy(model), use_ghost_clipping=True, **settings
            ),
            optimizers.DPOptimizerFastGradientClipping,
        ),
    }
    for name, (module, optimizer) in modes.items():
        stepper = optimizer(
            torch.optim.SGD(module.parameters(), lr=0.0),
            noise_multiplier=0.0,
            expected_batch_size=None,
            **settings,
        )
        ghost = "ghost" in name
        took = [step(module, stepper, x, y, ghost) for _ in range(repeats + 1)]
        weight = next(module.parameters())
        yield name, statistics.median(took[1:]), weight.grad.numpy().T


def perceptron(params):
    """Returns the same network with the same weights."""
    layers = []
    for name in sorted(params):
        kernel, bias = (np.array(params[name][key]) for key in ("kernel", "bias"))
        layer = torch.nn.Linear(*kernel.shape)
        layer.weight.data = torch.tensor(kernel.T.copy())
        layer.bias.data = torch.tensor(bias)
        layers += [layer, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def step(module, optimizer, x, y, ghost):
    """Times one step; ``max_grad_norm`` bounds the gradient of a row's loss."""
    optimizer.zero_grad()
    start = time.perf_counter()
    losses = torch.mean((module(x) - y) ** 2, dim=1)
    if ghost:
        DPTensorFastGradientClipping(module, optimizer, losses, "sum").backward()
    else:
        losses.sum().backward()
    optimizer.step()
    return time.perf_counter() - start
