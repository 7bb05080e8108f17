"""Attributes of persons, from a table with one row per person."""

from collections.abc import Mapping
from pathlib import Path

from jaxanon.datasets.custom_arrays import ENDING, RESERVED
from jaxanon.recordings import csv_rows


def read_people(path: Path) -> dict[str, dict[str, str]]:
    """Reads the attributes of each person from a CSV file with a column ``subject``.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if a person occurs twice, or an attribute is missing.
    """
    people = {}
    for line, row in csv_rows.records(path, ("subject",)):
        person = row.pop("subject")
        if person in people or not person or not row or not all(row.values()):
            raise ValueError(
                f"{path}, line {line}: a line must have a new person and a class of "
                f"each attribute, got {person!r} and {row}."
            )
        people[person] = row
    if not people:
        raise ValueError(f"{path} must have at least one person, got none.")
    return people


def attributes(
    people: Mapping[str, Mapping[str, str]] | None, columns, where: str
) -> tuple[str, ...]:
    """Returns the names of the attributes in ``people``.

    Raises:
      ValueError: if a name is reserved or in ``columns``, or persons have different
        attributes.
    """
    names = tuple(next(iter(people.values()), ())) if people else ()
    check_attributes(names, where)
    for person, row in (people or {}).items():
        if {*row} != {*names} or {*names} & {*columns} or not all(row.values()):
            raise ValueError(
                f"{where} must give each person a class of {list(names)}, and no other "
                f"attribute or column, got {row} for {person!r}."
            )
    return names


def check_attributes(names, where: str) -> None:
    """Raises ValueError for names that are reserved in a file of windows."""
    for name in names:
        if name in (*RESERVED, "subject", "") or name.endswith(ENDING):
            raise ValueError(
                f"{where} must not use reserved names for attributes, got {name!r}; "
                "rename that column."
            )
