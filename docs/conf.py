"""Sphinx configuration; the reference is generated from docstrings and registries."""

import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "extensions"))

from jaxanon import __version__

logging.getLogger("alembic").setLevel(logging.WARNING)  # Flower imports it.

project = "jaxanon"
release = __version__
html_title = f"jaxanon {release}"
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "collapse_navigation": True,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_prev_next": False,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {"index": []}
html_show_sourcelink = False
html_static_path = ["static"]
html_css_files = ["wide.css"]
html_copy_source = False
html_show_copyright = False
exclude_patterns = ["_build", "extensions", "static"]

extensions = [
    *("sphinx.ext.autodoc", "sphinx.ext.napoleon"),
    *("myst_nb", "generated", "fields", "crossings"),
]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # Print defaults as written in the source.
napoleon_numpy_docstring = False
default_role = "literal"  # Single backticks hold code.
python_maximum_signature_line_length = 88

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # A cached output may stem from older sources.
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 600
nb_merge_streams = True

nitpicky = True
# All names in jaxanon must resolve. Names in other packages are not checked, because
# their inventories would need a download.
nitpick_ignore_regex = [
    ("py:.*", rf"{package}(\..*)?")
    for package in (
        *("collections", "flax", "flwr", "jax", "numpy", "optax", "os", "pathlib"),
        *("rich", "socket", "starlette", "subprocess", "tensorflow_datasets"),
    )
]
nitpick_ignore_regex.append(("py:class", r"jaxanon\..*\.[A-Z]"))  # Type variables.
nitpick_ignore = [("py:class", "ArrayTree")]  # From Optax.
