"""The report of an evaluation: its sentences, its figures, its page."""

from jaxanon.report.text import headline, protocol, unfinished
from jaxanon.report.writer import (
    choose_examples,
    describe_data,
    describe_method,
    write,
    write_budget,
    write_learned,
    write_neighborhood,
    write_pareto_front,
    write_scores,
    write_search,
)

__all__ = [
    "choose_examples",
    "describe_data",
    "describe_method",
    "headline",
    "protocol",
    "unfinished",
    "write",
    "write_budget",
    "write_learned",
    "write_neighborhood",
    "write_pareto_front",
    "write_scores",
    "write_search",
]
