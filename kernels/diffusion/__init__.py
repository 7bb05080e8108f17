"""Diffusion: schedules, noising, DDPM, DDIM and DPM-Solver++ samplers, guidance."""

from jaxanon.kernels.diffusion.forward import (
    convert_denoiser_output,
    diffuse,
    diffusion_posterior,
    diffusion_velocity,
)
from jaxanon.kernels.diffusion.guidance import (
    classifier_free_guidance,
    negative_guidance,
)
from jaxanon.kernels.diffusion.multistep import dpm_solver_sample
from jaxanon.kernels.diffusion.sample import ddim_sample, ddpm_sample, diffusion_steps
from jaxanon.kernels.diffusion.schedule import (
    NoiseSchedule,
    cosine_noise_schedule,
    linear_noise_schedule,
    noise_schedule,
    quadratic_noise_schedule,
)
from jaxanon.kernels.diffusion.step import ddim_step, ddpm_step

__all__ = [
    "NoiseSchedule",
    "classifier_free_guidance",
    "convert_denoiser_output",
    "cosine_noise_schedule",
    "ddim_sample",
    "ddim_step",
    "ddpm_sample",
    "ddpm_step",
    "diffuse",
    "diffusion_posterior",
    "diffusion_steps",
    "diffusion_velocity",
    "dpm_solver_sample",
    "linear_noise_schedule",
    "negative_guidance",
    "noise_schedule",
    "quadratic_noise_schedule",
]
