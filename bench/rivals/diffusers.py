"""Times diffusers' 1-D U-Net with DDIM: python bench rivals.diffusers IN OUT.

Runs in its own environment without importing our library. IN is JSON: batch, channels,
time, steps, num_steps, parameters, repeats. Uses the widths, among those that its
attention allows, whose number of parameters is closest to ``parameters``.
"""

import json
import os
import statistics
import sys
import time

import diffusers
import torch
from diffusers import DDIMScheduler, UNet1DModel

WIDTHS = [
    (a, b, c)
    for a in (32, 64, 96)
    for b in (32, 64, 96, 128)
    for c in (32, 64, 96, 128, 192, 256)
    if a <= b <= c
]  # Its heads have 32 numbers each.


def network(widths, channels, time_):
    """Returns a network with self-attention on the narrowest level, like ours."""
    return UNet1DModel(
        sample_size=time_,
        in_channels=channels,
        out_channels=channels,
        extra_in_channels=2 * widths[0],  # Embedding of the step.
        block_out_channels=widths,
    ).eval()


def count(model):
    """Returns the number of parameters."""
    return sum(leaf.numel() for leaf in model.parameters())


def main():
    """Times sampling after a warm-up."""
    with open(sys.argv[1]) as file:
        given = json.load(file)
    torch.set_num_threads(os.cpu_count() or 1)
    torch.manual_seed(0)
    shape = given["batch"], given["channels"], given["time"]
    size = lambda widths: count(network(widths, *shape[1:]))
    widths = min(WIDTHS, key=lambda own: abs(size(own) - given["parameters"]))
    model = network(widths, *shape[1:])
    scheduler = DDIMScheduler(
        num_train_timesteps=given["num_steps"], timestep_spacing="trailing"
    )
    scheduler.set_timesteps(given["steps"])

    def sample():
        x = torch.randn(shape)
        with torch.inference_mode():
            for t in scheduler.timesteps:
                x = scheduler.step(model(x, t).sample, t, x).prev_sample
        return x

    sample()
    seconds = []
    for _ in range(given["repeats"]):
        start = time.perf_counter()
        sample()
        seconds.append(time.perf_counter() - start)
    found = {
        "windows_per_s": shape[0] / statistics.median(seconds),
        "parameters": count(model),
        "widths": widths,
        "threads": torch.get_num_threads(),
        "versions": f"{diffusers.__version__}, torch {torch.__version__}",
    }
    with open(sys.argv[2], "w") as file:
        json.dump(found, file)
