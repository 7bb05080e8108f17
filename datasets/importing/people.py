"""Attributes of persons, from a table with one row per person."""

from collections.abc import Mapping
from pathlib import Path

from jaxanon.datasets.custom_arrays import ENDING, RESERVED
from jaxanon.datasets.importing import cells, files, frames


def read_people(path: Path, encoding: str | None = None) -> dict[str, dict[str, str]]:
    """Reads the attributes of each person from a table with a column ``subject``.

    Args:
      path: path of the table.
      encoding: text encoding of CSV; None detects UTF-8 and UTF-16.

    Raises:
      FileNotFoundError: if the file does not exist.
      ValueError: if a person occurs twice, or an attribute is missing.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{str(path)!r} does not exist or is not a file.")
    (file,) = files.expand(path)
    frame = frames.of_file(file, encoding)
    index = frame.find("subject")
    names = {n: name for n, name in enumerate(frame.header) if name and n != index}
    if index is None or not names or len({*names.values()}) < len(names):
        raise ValueError(
            f"{path} must have one column 'subject' and at least one column of another "
            f"name, got {list(frame.header)}."
        )
    found = frame.fetch([], [index, *names], None)
    if found.malformed:
        raise ValueError(
            f"{path}, line {found.first_malformed}: a line must have "
            f"{len(frame.header)} cells, like the header."
        )
    columns = {n: cells.labels(column) for n, column in found.columns.items()}
    get = lambda n, row: ("", *columns[n].names)[columns[n].codes[row] + 1]
    people: dict[str, dict[str, str]] = {}
    for row in range(len(columns[index].codes)):
        person = get(index, row)
        each = {name: get(n, row) for n, name in names.items()}
        if not person and not any(each.values()):
            continue  # A line of delimiters.
        if person in people or not person or not all(each.values()):
            raise ValueError(
                f"{path}, line {found.line_of(row)}: a line must have a new person and "
                f"a class of each attribute, got {person!r} and {each}."
            )
        people[person] = each
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
