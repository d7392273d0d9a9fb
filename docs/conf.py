"""Sphinx: pages in Markdown, the reference from docstrings, formulas as MathML. Nothing is fetched, at no time."""

import re
import shutil
from pathlib import Path

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

import aucforest

PAGES = Path(__file__).parent

project, author, release = "aucforest", "The aucforest developers", aucforest.__version__
copyright = author
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
# single backticks name objects where there is one of that name, and parameters
default_role = "autolink"
nitpicky = True
# other libraries' names are in their own documentation, which is not fetched
nitpick_ignore_regex = [("py:obj", r"(dask|joblib|matplotlib|numpy|onnx|pandas|scipy|shap|sklearn|treelite)\w*\..*")]

myst_enable_extensions = ["dollarmath"]
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


class LinkNames(SphinxPostTransform):
    """Link code in the text of Markdown pages to the reference, where it is the name of one object there.

    Such pages are also read where a role is shown as it is written, so names are in plain backticks.
    """

    default_priority = 500

    def run(self):
        if self.env.doc2path(self.env.docname).suffix != ".md":
            return
        for code in list(self.document.findall(nodes.literal)):
            text = code.astext()
            name = text.removesuffix("()")
            # all objects of this name, or whose name ends with it after a dot; aliases are where classes are defined
            found = self.env.domains["py"].find_obj(self.env, None, None, name, None, 1)
            found = [(full_name, entry) for full_name, entry in found if not entry.aliased]
            if len(found) != 1 or isinstance(code.parent, (nodes.reference, nodes.title)):
                continue
            ((full_name, entry),) = found
            # a word alone may be a parameter or a command, as `report`, and an attribute that of another object
            public = entry.objtype in ("class", "exception", "function") and not re.fullmatch("[a-z]+", text)
            if public or "." in name:
                place = self.env.docname, entry.docname, entry.node_id
                code.replace_self(make_refnode(self.app.builder, *place, code.deepcopy(), full_name))


def setup(app):
    """Register the above; bring the notebooks among the pages."""
    shutil.copytree(PAGES.parent / "notebooks", PAGES / "notebooks", dirs_exist_ok=True)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.config.html_math_renderer = "mathml"
    app.add_post_transform(LinkNames)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("source-read", link_notebooks)
