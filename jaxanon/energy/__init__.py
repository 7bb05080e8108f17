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
from jaxanon.energy.neighbourhood import Street, street
from jaxanon.energy.newcomers import Reached, days_to_reach, join
from jaxanon.energy.placement import apart, collect_state, deal_state, live_apart
from jaxanon.energy.q_learning import Agent, AgentState, DQNConfig, dqn, greedy
from jaxanon.energy.saving import (
    FIXED_CENTS,
    Savings,
    cents,
    per_day,
    per_hour,
    savings,
    share_of,
    variable_price,
)
from jaxanon.energy.settings import PFDRLSettings, street_of
from jaxanon.energy.simulator import APPLIANCES, Appliance, Households, households
from jaxanon.energy.system import System, SystemState, live, lives, pfdrl

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
    "PFDRLConfig",
    "PFDRLSettings",
    "Reached",
    "Savings",
    "Series",
    "Street",
    "System",
    "SystemState",
    "Trace",
    "apart",
    "begin_fit",
    "broadcast_epsilon",
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
    "join",
    "live",
    "live_apart",
    "lives",
    "load_homes",
    "measured",
    "metered",
    "mode_of",
    "num_broadcasts",
    "observation",
    "optimal_actions",
    "optimal_values",
    "per_day",
    "per_hour",
    "persistence",
    "pfdrl",
    "pfdrl_method",
    "reward",
    "savings",
    "scale_of",
    "share_of",
    "street",
    "street_of",
    "variable_price",
]
