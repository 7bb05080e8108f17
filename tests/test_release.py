"""Release metadata is consistent, and names every licence."""

import pathlib
import re
import tomllib

import pytest

import jaxanon
from jaxanon import datasets

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def project():
    if not (ROOT / "CITATION.cff").exists():
        pytest.skip("the sources are not beside the tests; only a checkout has both")
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_versions_agree(project):
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    assert cited.group(1) == project["version"] == jaxanon.__version__


def test_the_changelog_tells_of_this_version_on_the_day_that_is_cited(project):
    log = (ROOT / "CHANGELOG.md").read_text()
    day = re.search(r"^date-released: (.+)$", (ROOT / "CITATION.cff").read_text(), re.M)
    released = [one for one in re.findall(r"^## (.+)$", log, re.M) if " - " in one]
    assert released[0] == f"[{project['version']}] - {day.group(1)}"


def test_the_five_publications_are_cited(project):
    cited = (ROOT / "CITATION.cff").read_text()
    for title in ("Blinder", "IoT Applications", "DEEProtect", "on the Edge", "DySan"):
        assert len(re.findall(rf"^    title: .*{title}", cited, re.M)) == 1, title
    named = set(re.findall(r"[a-z_]+", cited))
    assert {"blinder", "atlas", "pfdrl", "privatehub", "deeprotect", "dysan"} <= named


def test_every_dependency_and_data_set_has_its_licence(project):
    text = (ROOT / "LICENCES.md").read_text()
    named = set(re.findall(r"[\w-]+", text))
    extras = project["optional-dependencies"]
    wanted = [
        *project["dependencies"],
        *(one for extra in extras.values() for one in extra),
    ]
    packages = {re.match(r"[\w-]+", one).group() for one in wanted} - {"jaxanon"}
    assert not packages - named, "LICENCES.md names no licence of these"
    assert not {f"`{name}`" for name in datasets.names()} - set(
        re.findall(r"`\w+`", text)
    )
