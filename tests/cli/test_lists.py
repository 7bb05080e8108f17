"""Lists of names in options, whose names may hold commas and quotes."""

import dataclasses

import hypothesis.strategies as st
import pytest
from hypothesis import given

from jaxanon.cli import data as cli_data

NAMES = (
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
    .map(str.strip)
    .filter(bool)
)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("a", "b"), ("a", "b")),
        (("a,b", "c"), ("a", "b", "c")),
        (('"group, A"', "side"), ("group, A", "side")),
        (('"group, A",side',), ("group, A", "side")),
        (('side, "group, A"',), ("side", "group, A")),
        (('5" pipe', '"say ""so"""'), ('5" pipe', 'say "so"')),
    ],
)
def test_quotes_keep_commas(words, wanted):
    assert cli_data.names(words, "private") == wanted


@pytest.mark.parametrize("words", [("",), ("a,,b",), ('""',), ()])
def test_an_empty_name_is_refused(words):
    with pytest.raises(ValueError, match="--private must be names"):
        cli_data.names(words, "private")


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_a_run_folder_lists_what_was_given(tmp_path_factory, wanted):
    words = tuple(cli_data._joined([name]) for name in wanted)
    assert cli_data.names(words, "private") == tuple(wanted)
    folder = tmp_path_factory.mktemp("run")
    options = cli_data.DataOptions(private=words)
    cli_data.remember(folder, options)
    stored = cli_data._options(cli_data.recorded(folder / cli_data.RECORD))
    assert cli_data.names(stored.private, "private") == tuple(wanted)
    again = cli_data._options(dataclasses.asdict(stored))
    assert cli_data.names(again.private, "private") == tuple(wanted)
