"""The report of an evaluation: its words, its figures, its page."""

from jaxanon.report.describe import choose_examples, describe_data, describe_method
from jaxanon.report.files import (
    write,
    write_budget,
    write_front,
    write_learned,
    write_search,
    write_street,
)
from jaxanon.report.words import headline, protocol

__all__ = [
    "choose_examples",
    "describe_data",
    "describe_method",
    "headline",
    "protocol",
    "write",
    "write_budget",
    "write_front",
    "write_learned",
    "write_search",
    "write_street",
]
