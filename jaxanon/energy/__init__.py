"""Reinforcement learning that switches off devices in standby at home."""

from jaxanon.energy.agent import AgentRecord, summarize_slot
from jaxanon.energy.config import METHODS, PFDRLConfig
from jaxanon.energy.forecasting import (
    FitState,
    ForecastConfig,
    Forecaster,
    Trace,
    begin_fit,
    fit_gradient,
    fit_step,
    forecaster,
    persistence,
    compute_scale,
)
from jaxanon.energy.guarantee import broadcast_epsilon, num_broadcasts
from jaxanon.energy.homes import Homes, HomesSpec, Meters, from_readings, clean_power
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
from jaxanon.energy.modes import OFF, ON, STANDBY, Levels, find_levels, classify_mode
from jaxanon.energy.neighbourhood import Neighborhood, build_neighborhood
from jaxanon.energy.newcomers import LearningTime, add_home, days_to_reach
from jaxanon.energy.placement import (
    shard_neighborhood,
    collect_state,
    deal_state,
    simulate_sharded,
)
from jaxanon.energy.q_learning import Agent, AgentState, DQNConfig, dqn, greedy
from jaxanon.energy.saving import (
    FIXED_CENTS,
    Savings,
    cents,
    saving_per_day,
    saving_per_hour,
    savings,
    safe_divide,
    variable_price,
)
from jaxanon.energy.settings import PFDRLSettings, neighborhood_from_settings
from jaxanon.energy.simulator import APPLIANCES, Appliance, Households, households
from jaxanon.energy.system import (
    PFDRLSystem,
    SystemState,
    simulate_batch,
    pfdrl,
    simulate,
)

__all__ = [
    "APPLIANCES",
    "FIXED_CENTS",
    "METHODS",
    "OFF",
    "ON",
    "STANDBY",
    "AgentRecord",
    "Agent",
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
    "Levels",
    "Meters",
    "Neighborhood",
    "PFDRLConfig",
    "PFDRLSettings",
    "PFDRLSystem",
    "LearningTime",
    "Savings",
    "Series",
    "SystemState",
    "Trace",
    "add_home",
    "shard_neighborhood",
    "begin_fit",
    "broadcast_epsilon",
    "build_neighborhood",
    "cents",
    "collect_state",
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
    "simulate_batch",
    "load_homes",
    "summarize_slot",
    "clean_power",
    "classify_mode",
    "neighborhood_from_settings",
    "num_broadcasts",
    "observation",
    "optimal_actions",
    "optimal_values",
    "persistence",
    "pfdrl",
    "pfdrl_method",
    "reward",
    "saving_per_day",
    "saving_per_hour",
    "savings",
    "compute_scale",
    "safe_divide",
    "simulate",
    "simulate_sharded",
    "variable_price",
]
