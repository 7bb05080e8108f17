"""Homes that switch standby off: their devices, the environment, what it saves."""

from jaxanon.energy.agent import Acted, measured
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
    scale_of,
)
from jaxanon.energy.guarantee import broadcast_epsilon, num_broadcasts
from jaxanon.energy.homes import Homes, HomesSpec, Meters, from_readings, metered
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
from jaxanon.energy.modes import OFF, ON, STANDBY, Levels, find_levels, mode_of
from jaxanon.energy.neighbourhood import Neighborhood, build_neighborhood
from jaxanon.energy.newcomers import Reached, add_home, days_to_reach
from jaxanon.energy.placement import apart, collect_state, deal_state, simulate_sharded
from jaxanon.energy.q_learning import Agent, AgentState, DQNConfig, dqn, greedy
from jaxanon.energy.saving import (
    FIXED_CENTS,
    Savings,
    cents,
    saving_per_day,
    saving_per_hour,
    savings,
    share_of,
    variable_price,
)
from jaxanon.energy.settings import PFDRLSettings, neighborhood_from_settings
from jaxanon.energy.simulator import APPLIANCES, Appliance, Households, households
from jaxanon.energy.system import PFDRLSystem, SystemState, lives, pfdrl, simulate

__all__ = [
    "APPLIANCES",
    "FIXED_CENTS",
    "METHODS",
    "OFF",
    "ON",
    "STANDBY",
    "Acted",
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
    "Reached",
    "Savings",
    "Series",
    "SystemState",
    "Trace",
    "add_home",
    "apart",
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
    "lives",
    "load_homes",
    "measured",
    "metered",
    "mode_of",
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
    "scale_of",
    "share_of",
    "simulate",
    "simulate_sharded",
    "variable_price",
]
