"""How Sphinx builds the site: from the repository's root, `sphinx-build -W docs site`.

The pages are the Markdown files beside this one, which also read well on a code host; the gallery
is made of `examples/`, the reference of the docstrings. Nothing is fetched while building.
`-D plot_gallery=0` builds without running the examples.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import site_hooks  # noqa: E402

import pursuit  # noqa: E402

project, author = "pursuit", "pursuit developers"
version = release = pursuit.__version__
extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_templates"]
templates_path = ["_templates"]
default_role = "py:obj"  # what stands in single backticks in a docstring

# Markdown
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

# The reference: each class and function on a page of its own, with the examples that use it.
autosummary_generate = True
# `Frontier` has a page, too, and some file systems take these names for one.
autosummary_filename_map = {"pursuit.frontier": "pursuit.frontier_function"}
autodoc_typehints = "none"  # the docstrings name the types
numpydoc_show_class_members = False  # the template lists them
numpydoc_class_members_toctree = False

# The gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py",
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("pursuit",),
    "reset_modules": ("site_hooks.reset_pictures",),
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "min_reported_time": 1,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "pydata_sphinx_theme"
html_title = "pursuit"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["pursuit.css"]
html_js_files = ["sortable.js"]
toc_object_entries_show_parents = "hide"
html_theme_options = {
    "show_prev_next": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True


def setup(app):
    """Connect the hooks."""
    app.connect("builder-inited", site_hooks.copy_results)
    app.connect("source-read", site_hooks.links_within_the_site)
    app.connect("doctree-read", site_hooks.link_names)
    app.connect("autodoc-skip-member", site_hooks.skip_inherited)
    app.connect("autodoc-process-docstring", site_hooks.plain_text, priority=900)
