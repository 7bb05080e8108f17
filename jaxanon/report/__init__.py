"""Reports of evaluations: verdicts, sentences, figures and pages."""

from jaxanon.report.origin import footer
from jaxanon.report.text import headline, protocol, unfinished
from jaxanon.report.verdicts import verdict
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
    "footer",
    "headline",
    "protocol",
    "unfinished",
    "verdict",
    "write",
    "write_budget",
    "write_learned",
    "write_neighborhood",
    "write_pareto_front",
    "write_scores",
    "write_search",
]
