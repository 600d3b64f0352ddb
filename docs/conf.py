"""Configuration of the documentation: `sphinx-build -W -b html docs docs/_build/html`.

No network: nothing is fetched, and examples run on the sample that ships with the package.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS), str(DOCS.parent)]
# More threads of numpy would wait for each other, busily: an example takes ten times as long.
os.environ |= {"NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

import making  # noqa: E402

import bsdsbench  # noqa: E402

making.write_all(DOCS / "generated")
warnings.filterwarnings("ignore", message=".*non-interactive.*")

project = "bsdsbench"
author = copyright = "the bsdsbench developers"
version = release = bsdsbench.__version__
extensions = [
    "sphinx.ext.autodoc",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "linking",
]
exclude_patterns = ["_build", "examples", "**/README.*", "howto/codabench/**", "**.ipynb"]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
suppress_warnings = ["config.cache", "myst.xref_missing"]  # links to files of the repository
default_role = "py:obj"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
autodoc_default_options = {
    "members": True,
    "inherited-members": "Exception, tuple, object, Mapping",
    "member-order": "bysource",
    "show-inheritance": True,
}
autodoc_mock_imports = ["torch", "torchmetrics"]
autodoc_typehints = "none"
numpydoc_show_class_members = False

linkcheck_timeout = 30
linkcheck_retries = 3
linkcheck_ignore = [r"^(?!https?:)"]  # the others are tested in the built site

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "bsdsbench"
smartquotes = False  # they would turn --option into a dash
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js", "sliders.js"]
html_context = {"default_mode": "auto"}
html_show_sourcelink = False
html_use_index = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    # What a walk prints is as wide as its terminal.
    "secondary_sidebar_items": {"walks/*": [], "[!w]**": ["page-toc"]},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {name: [] for name in ("index", "contribute")}

sphinx_gallery_conf = {
    "examples_dirs": "examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r".*\.py",
    "within_subsection_order": "linking.ByNumber",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "min_reported_time": 1000,
    "write_computation_times": False,
}
