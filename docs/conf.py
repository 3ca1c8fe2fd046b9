"""Configuration of the site, which `make docs` builds from the root of the repository.

Pages show and link any of the repository's files.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "sphinx"))

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported
import xgrad
from source_pages import linkcode_resolve as linkcode_resolve  # Sphinx's name of the option

project = "xgrad"
version = release = xgrad.__version__
copyright = "the authors of xgrad"  # Sphinx's name of the option

root_doc = "docs/index"
include_patterns = [
    "docs/**",
    "CHANGELOG.md",
    "CODE_OF_CONDUCT.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "backends/README.md",
    "benchmarks/README.md",
    "benchmarks/results/*.md",
    "tests/*/*.md",
]
exclude_patterns = [".*", "build", "docs/sphinx"]
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.linkcode",
    "sphinx.ext.napoleon",
    "graph_directive",
    "mathml",
    "reference",
    "replacements_directive",
    "source_pages",
    "sphinx_copybutton",
]

myst_heading_anchors = 4
myst_enable_extensions = ["attrs_block", "colon_fence", "dollarmath"]

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 60

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the docstrings have the types, with shapes
default_role = "py:obj"
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True

# A button copies programs and commands, without prompts; outputs have none.
copybutton_selector = "div:not(.highlight-text) > div.highlight pre"
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"xgrad {version}"
html_logo = html_favicon = "static/logo.svg"
html_static_path = ["static"]
html_css_files = ["site.css", "math.css"]
html_math_renderer = "mathml"
html_extra_path = ["root"]  # what stands at the root of the site
html_search_scorer = str(Path(__file__).parent / "static/search_order.js")
html_copy_source = html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "monokai"
