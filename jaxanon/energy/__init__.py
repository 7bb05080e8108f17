"""Reinforcement learning that switches off devices in standby at home."""

from jaxanon.energy.agent import AgentRecord, summarize_slot
from jaxanon.energy.config import METHODS, PFDRLConfig
from jaxanon.energy.forecasting import (
    FitState,
    ForecastConfig,
    Forecaster,
    Trace,
    begin_fit,
    compute_scale,
    fit_gradient,
    fit_step,
    forecaster,
    persistence,
)
from jaxanon.energy.guarantee import broadcast_epsilon, num_broadcasts
from jaxanon.energy.homes import Homes, HomesSpec, Meters, clean_power, from_readings
from jaxanon.energy.loading import load as load_homes
from jaxanon.energy.mdp import (
    Environment,
    Series,
    environment,
    observation,
    optimal_actions,
    optimal_values,
    reward,
)
from jaxanon.energy.method import HomesState, pfdrl_method
from jaxanon.energy.modes import OFF, ON, STANDBY, Levels, classify_mode, find_levels
from jaxanon.energy.neighborhood import Neighborhood, build_neighborhood
from jaxanon.energy.newcomers import LearningTime, add_home, days_to_reach
from jaxanon.energy.placement import (
    collect_state,
    deal_state,
    shard_neighborhood,
    simulate_sharded,
)
from jaxanon.energy.q_learning import Agent, AgentState, DQNConfig, dqn, greedy
from jaxanon.energy.saving import (
    FIXED_CENTS,
    Savings,
    cents,
    safe_divide,
    saving_per_day,
    saving_per_hour,
    savings,
    variable_price,
)
from jaxanon.energy.settings import PFDRLSettings, neighborhood_from_settings
from jaxanon.energy.simulator import APPLIANCES, Appliance, Households, households
from jaxanon.energy.system import (
    PFDRLSystem,
    SystemState,
    pfdrl,
    simulate,
    simulate_batch,
)

__all__ = [
    "APPLIANCES",
    "FIXED_CENTS",
    "METHODS",
    "OFF",
    "ON",
    "STANDBY",
    "Agent",
    "AgentRecord",
    "AgentState",
    "Appliance",
    "DQNConfig",
    "Environment",
    "FitState",
    "ForecastConfig",
    "Forecaster",
    "Homes",
    "HomesSpec",
    "HomesState",
    "Households",
    "LearningTime",
    "Levels",
    "Meters",
    "Neighborhood",
    "PFDRLConfig",
    "PFDRLSettings",
    "PFDRLSystem",
    "Savings",
    "Series",
    "SystemState",
    "Trace",
    "add_home",
    "begin_fit",
    "broadcast_epsilon",
    "build_neighborhood",
    "cents",
    "classify_mode",
    "clean_power",
    "collect_state",
    "compute_scale",
    "days_to_reach",
    "deal_state",
    "dqn",
    "environment",
    "find_levels",
    "fit_gradient",
    "fit_step",
    "forecaster",
    "from_readings",
    "greedy",
    "households",
    "load_homes",
    "neighborhood_from_settings",
    "num_broadcasts",
    "observation",
    "optimal_actions",
    "optimal_values",
    "persistence",
    "pfdrl",
    "pfdrl_method",
    "reward",
    "safe_divide",
    "saving_per_day",
    "saving_per_hour",
    "savings",
    "shard_neighborhood",
    "simulate",
    "simulate_batch",
    "simulate_sharded",
    "summarize_slot",
    "variable_price",
]
