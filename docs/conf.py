"""Sphinx: pages in Markdown, the reference from docstrings, formulas as MathML. Nothing is fetched, at no time."""

import ast
import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml

import aucforest

PAGES = Path(__file__).parent
ROOT = PAGES.parent

project, author, release = "aucforest", "The aucforest developers", aucforest.__version__
copyright = author
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "generated", "peers.md"]
templates_path = ["_templates"]
# single backticks name objects where there is one of that name, and parameters
default_role = "autolink"
nitpicky = True
# other libraries' names are in their own documentation, which is not fetched
nitpick_ignore_regex = [("py:obj", r"(dask|joblib|matplotlib|numpy|onnx|pandas|scipy|shap|sklearn|treelite)\w*\..*")]

myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
# notebooks are stored without outputs: the pages show what they print now, and one that fails fails the build
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": "BaseEstimator,ClassifierMixin,tuple,object"}
autosummary_generate = True
numpydoc_show_class_members = False

plot_include_source = True
plot_html_show_formats = False
plot_html_show_source_link = False
plot_formats = [("png", 110)]
plot_rcparams = {"figure.figsize": (6.4, 3.8), "axes.spines.top": False, "axes.spines.right": False}

html_theme = "pydata_sphinx_theme"
html_title = f"aucforest {release}"
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
html_theme_options = {
    "header_links_before_dropdown": 5,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "navbar_align": "left",
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {
    page: []
    for page in (
        "index", "install", "tutorial", "gallery", "benchmarks", "scale", "changes", "architecture", "contributing"
    )
}  # fmt: skip


def formula(translator, node):
    """Write a formula as MathML, which browsers draw by themselves."""
    display = node.tagname == "math_block"
    tag = "div" if display else "span"
    mathml = tex2mathml(node.astext(), as_block=display)
    number = f' id="equation-{node["label"]}"' if node.get("label") else ""
    translator.body.append(f'<{tag} class="formula"{number}>{mathml}</{tag}>')
    raise nodes.SkipNode


def skip_member(app, kind, name, member, skip, options):
    """Leave out what named tuples and scikit-learn's metadata routing add to classes."""
    document = getattr(member, "__doc__", None) or ""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return True if routing or document.startswith("Alias for field number") else None


def link_notebooks(app, page, source):
    """Let links to the notebooks of the repository lead to their pages, which are a folder closer."""
    source[0] = re.sub(r"\]\(\.\./((\.\./)*notebooks/)", r"](\1", source[0])


def describe_benchmarks():
    """Return a section for each benchmark: its command, and what its docstring says that it asks."""
    sections = []
    for path in sorted((ROOT / "benchmarks").glob("[!_]*.py")):
        text = ast.get_docstring(ast.parse(path.read_text()))
        sections.append(f"### {path.stem}\n\n{text}\n\n```console\n$ python benchmarks/{path.name}\n```\n")
    return "\n".join(sections)


def setup(app):
    """Register the above; bring the notebooks, and what benchmarks say, among the pages."""
    shutil.copytree(ROOT / "notebooks", PAGES / "notebooks", dirs_exist_ok=True)
    (PAGES / "generated").mkdir(exist_ok=True)
    (PAGES / "generated" / "benchmarks.md").write_text(describe_benchmarks())
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.config.html_math_renderer = "mathml"
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", link_notebooks)
