"""Makes a page of the guide of every section of the README."""

import pathlib
import re

import reference

FOLDER = "guide"
README = pathlib.Path(__file__).resolve().parents[2] / "README.md"
FENCED = re.compile(r"^(```.*?^```)", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def setup(app):
    """Makes Sphinx cut the README before it looks for pages."""
    app.connect("builder-inited", lambda app: write(pathlib.Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write(folder: pathlib.Path) -> None:
    """Writes a page for each section into ``folder``, and their table of contents."""
    texts = cut(README.read_text())
    names = "\n".join(name.removesuffix(".md") for name in texts)
    texts["index.md"] = (
        "# Guide\n\nThe project's README, a page for each section.\n\n"
        f"```{{toctree}}\n{names}\n```\n"
    )
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        reference.put(folder / name, text)


def cut(text: str) -> dict[str, str]:
    """File name -> page: headings a level up, links to where their targets went."""
    parts = re.split(r"^## (.+)\n", _headings_marked(text), flags=re.MULTILINE)[1:]
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    places = {}  # of a heading's anchor
    for title, body in sections.items():
        places[slug(title)] = f"{slug(title)}.md"
        for heading in re.findall(r"^###+ (.+)$", body, re.MULTILINE):
            places[slug(heading)] = f"{slug(title)}.md#{slug(heading)}"
    return {
        f"{slug(title)}.md": _unmarked(f"# {title}\n{_placed(body, places)}")
        for title, body in sections.items()
    }


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def _headings_marked(text):
    """Hides what only looks like a heading, for it stands in code."""
    hide = lambda match: re.sub(r"^#", "\0", match[0], flags=re.MULTILINE)
    return FENCED.sub(hide, text)


def _unmarked(text):
    return text.replace("\0", "#")


def _placed(body, places):
    def moved(match):
        target = match[1]
        if "://" in target:
            return match[0]
        if target.startswith("#"):
            return f"]({places[target[1:]]})"
        return f"](../../{target})"

    body = LINK.sub(moved, body)
    return re.sub(r"^#(#+ )", r"\1", body, flags=re.MULTILINE)
