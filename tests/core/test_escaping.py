"""Names from data in paths, pages, tables, shell lines and CSV headers."""

import csv
import html.parser
import io
import pathlib
import shlex
import xml.etree.ElementTree

from hypothesis import given, settings
from hypothesis import strategies as st

from jaxanon.cli import console
from jaxanon.core import escaping
from jaxanon.datasets import writing
from jaxanon.report import figures, page

# Surrogates stand for bytes outside UTF-8, as in file names.
alphabet = "/.,[]()|$*_`<>&\"'\\\n\r\t\x1b\x00\u2028:; -ax\xe9\udcff"
names = st.text(alphabet, min_size=1, max_size=12) | st.sampled_from(
    ("../../x", "activity / label", "acc, x", "[red]", "a|b", "$x$", ":smile:", "..")
)
some = settings(max_examples=60, deadline=None)
few = settings(max_examples=5, deadline=None)


@some
@given(names, names)
def test_file_names_stay_in_their_folder_and_apart(one, other):
    path = pathlib.Path("/run", f"{writing.file_name(one)}.svg")
    assert path.resolve().parent == pathlib.Path("/run").resolve()
    assert "\0" not in path.name and path.name.encode()
    assert (writing.file_name(one) == writing.file_name(other)) == (one == other)


@some
@given(names)
def test_printed_text_has_no_command_for_a_terminal(name):
    text = escaping.printable(name)
    text.encode()
    assert all(char.isprintable() or char in "\t\n\u2028" for char in text)
    assert len(escaping.one_line(name).splitlines()) <= 1


@some
@given(names)
def test_shell_words_are_read_as_one(name):
    assert shlex.split(f"jaxanon evaluate {escaping.shell_word(name)}")[2:] == [name]


@some
@given(st.lists(names, min_size=2, max_size=3))
def test_markdown_cells_have_neither_borders_nor_markup(cells):
    row = f"| {' | '.join(map(escaping.markdown, cells))} |"
    assert len(row.splitlines()) == 1
    bare = row.replace("\\\\", "").replace("\\|", "")
    assert bare.count("|") == len(cells) + 1
    assert "<" not in row


@some
@given(st.lists(names, min_size=1, max_size=3))
def test_terminals_show_names_as_text(cells):
    table = console.table_of("[red]title", "[bold]a", "b")
    for cell in cells:
        table.add_row(escaping.one_line(cell), "[link=x]1")
    out = console._console()
    with out.capture() as shown:
        out.print(table)
    text = shown.get()
    assert "[red]title" in text and "[bold]a" in text and "[link=x]1" in text


@few
@given(names)
def test_pages_and_figures_show_names_as_text(name):
    name = escaping.printable(name)
    found = []
    parser = html.parser.HTMLParser()
    parser.handle_starttag = lambda tag, _: found.append(tag)
    parser.feed(page.table(("a",), [(name,)]))
    assert set(found) <= {"table", "thead", "tbody", "tr", "th", "td", "div"}
    figure, axes = figures.grid(1, 1, 2.0, 1.0)
    axes[0, 0].set_title(name)
    svg = figures.picture(figure, "").svg
    xml.etree.ElementTree.fromstring(svg)


@some
@given(st.lists(names.map(escaping.one_line), min_size=1, max_size=3))
def test_csv_headers_are_read_as_they_were_written(header):
    text = io.StringIO()
    csv.writer(text).writerow(["time", *header])
    assert next(csv.reader(io.StringIO(text.getvalue())))[1:] == header
