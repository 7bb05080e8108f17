"""Homes that switch standby off: their devices, the environment, what it saves."""

from jaxanon.energy.metering import Meters, metered
from jaxanon.energy.modes import OFF, ON, STANDBY, Levels, find_levels, mode_of
from jaxanon.energy.q_learning import Agent, AgentState, DQNConfig, dqn, greedy
from jaxanon.energy.saving import (
    FIXED_CENTS,
    Savings,
    cents,
    per_day,
    per_hour,
    per_month,
    savings,
    summary,
    variable_price,
)
from jaxanon.energy.switching import (
    Environment,
    Series,
    environment,
    observation,
    optimal_actions,
    optimal_values,
    reward,
)

__all__ = [
    "FIXED_CENTS",
    "OFF",
    "ON",
    "STANDBY",
    "Agent",
    "AgentState",
    "DQNConfig",
    "Environment",
    "Levels",
    "Meters",
    "Savings",
    "Series",
    "cents",
    "dqn",
    "environment",
    "find_levels",
    "greedy",
    "metered",
    "mode_of",
    "observation",
    "optimal_actions",
    "optimal_values",
    "per_day",
    "per_hour",
    "per_month",
    "reward",
    "savings",
    "summary",
    "variable_price",
]
