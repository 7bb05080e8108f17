"""Settings of Sphinx: the reference from docstrings, the guide from the README."""

import logging
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "extensions"))

from jaxanon import __version__

logging.getLogger("alembic").setLevel(logging.WARNING)  # Flower's, as it is imported.

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
    *("myst_nb", "reference", "guide", "commands", "recipes", "fields", "crossings"),
]

autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # As they are written, not as they print.
napoleon_numpy_docstring = False
default_role = "literal"  # Single backticks, too, hold code.
python_maximum_signature_line_length = 88

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 4
nb_execution_mode = "force"  # A page that was right for older sources proves nothing.
nb_execution_raise_on_error = True
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_merge_streams = True

nitpicky = True
# Every name of ours must resolve. Other packages' are not looked up: their inventories
# would have to be fetched, and the build needs no network.
nitpick_ignore_regex = [
    ("py:.*", rf"{package}(\..*)?")
    for package in (
        *("collections", "flax", "flwr", "jax", "numpy", "optax", "os", "pathlib"),
        *("rich", "socket", "starlette", "subprocess"),
    )
]
nitpick_ignore_regex.append(("py:class", r"jaxanon\..*\.[A-Z]"))  # Type variables.
nitpick_ignore = [("py:class", "ArrayTree")]  # Optax's name for any tree of arrays.
