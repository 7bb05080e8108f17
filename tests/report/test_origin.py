"""The footer: version, date, command and duration."""

import datetime

from jaxanon import __version__
from jaxanon.core import command_line
from jaxanon.report import origin, writer

DAY = datetime.datetime(2030, 1, 2, 3, 4, tzinfo=datetime.UTC)


def test_the_footer_names_the_command():
    token = command_line.words.set(["evaluate", "my run", "--seed", "1"])
    try:
        found = origin.footer(754, now=DAY)
    finally:
        command_line.words.reset(token)
    command = "jaxanon evaluate 'my run' --seed 1"
    assert found == (__version__, "2030-01-02 03:04 UTC", command, 754)
    assert origin.footer(now=DAY).command == "jaxanon in Python"


def test_the_footer_stands_in_every_page(made, tmp_path):
    footer = origin.Footer("1.2.3", "2030-01-02 03:04 UTC", "jaxanon <x>", 754)
    pages = [
        writer.render_anonymizer(made.anonymizer(), {}, footer),
        writer.write_learned(tmp_path / "l", made.learner(), footer).read_text(),
        writer.write_neighborhood(tmp_path / "e", made.pfdrl(), footer).read_text(),
    ]
    for page in pages:
        assert "jaxanon 1.2.3 · 2030-01-02 03:04 UTC · evaluated in 12 min 34 s" in page
        assert "<code>jaxanon &lt;x&gt;</code>" in page
    budget = writer.write_budget(tmp_path / "b", "t", "a", made.budget()).read_text()
    assert f"jaxanon {__version__} · " in budget and "evaluated in" not in budget
