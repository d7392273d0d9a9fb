"""What the pages promise: their examples print what they say, their links and every public name lead somewhere."""

import ast
import doctest
import inspect
import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

import aucforest

plt.switch_backend("agg")

ROOT = Path(__file__).parents[1]
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/[hmr]*/*.md")])
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]

# Their forests and comparisons are of a size that shows something.
LONG = (
    "gallery|tutorial|howto/(alert_budgets|calibration|clusters|criteria|explanations|groups|monitoring|rare_classes"
    "|reports|stacking|thresholds)"
)


@pytest.mark.parametrize("page", [
    pytest.param(page, marks=[pytest.mark.slow] * bool(re.fullmatch(rf"docs/({LONG})\.md", page)))
    for page, text in PAGES.items()
    if ">>> " in text
])  # fmt: skip
def test_the_examples_print_what_they_say(page):
    # without its fences, which would be taken for output
    text = re.sub(r"^```.*$", "", PAGES[page], flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    said: list[str] = []
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    doctest.DocTestRunner(optionflags=options).run(examples, out=said.append)
    assert said == []


def test_the_diffs_of_contributing_apply():
    diffs = "".join(re.findall(r"^```diff\n(.+?)^```", PAGES["CONTRIBUTING.md"], flags=re.MULTILINE | re.DOTALL))
    _, *parts = re.split(r"^--- (.+)\n\+\+\+ .+\n", diffs, flags=re.MULTILINE)
    assert len(parts) > 6
    for path, hunks in zip(parts[::2], parts[1::2]):
        source = "" if path == "/dev/null" else (ROOT / path.removeprefix("a/")).read_text()
        for hunk in hunks.split("@@\n")[1:]:
            before = "".join(line[1:] or "\n" for line in hunk.splitlines(keepends=True) if line[0] != "+")
            assert before in source


def relative_links(text):
    """Return the files that a Markdown text links to or shows, without those that have an address."""
    pattern = r"\]\(([^)#\s]+)(?:#[^)]*)?\)|^\[[^\]]+\]: (\S+)|<img[^>]+src=\"([^\"]+)"
    links = map("".join, re.findall(pattern, text, flags=re.MULTILINE))
    return [link for link in links if "://" not in link and not link.startswith(("#", "mailto:"))]


def test_links_to_files_lead_somewhere():
    """As the repository shows them: all pages, whether Sphinx reads them or not, and the text of notebooks."""
    listed = subprocess.run(["git", "ls-files", "*.md", "*.ipynb"], cwd=ROOT, capture_output=True, text=True)
    files = listed.stdout.split() or [*PAGES, *(f"notebooks/{path.name}" for path in ROOT.glob("notebooks/*.ipynb"))]
    assert {*PAGES} <= {*files}
    links = []
    for file in files:
        text = (ROOT / file).read_text()
        if file.endswith(".ipynb"):
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
        links += [(file, link) for link in relative_links(text)]
    assert len(links) > 100
    assert [(file, link) for file, link in links if not ((ROOT / file).parent / link).exists()] == []


def anchors(text):
    """Return the anchors of headings, which Sphinx gives the first three levels only."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_links_to_headings_lead_somewhere():
    """Of two headings of one name the first one would be found."""
    links = [(page, *link) for page, text in PAGES.items() for link in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text)]
    assert len(links) > 20
    texts = [(ROOT / page).parent.joinpath(file).read_text() if file else PAGES[page] for page, file, _ in links]
    assert [link for link, text in zip(links, texts) if anchors(text).count(link[2]) != 1] == []


def test_links_between_built_pages_lead_somewhere():
    """What is not in `docs` is no page, but for the notebooks, to which the links are led."""
    body = ast.parse((ROOT / "docs/conf.py").read_text()).body
    (function,) = (node for node in body if getattr(node, "name", "") == "link_notebooks")
    names: dict = {"re": re}
    exec(ast.unparse(function), names)
    targets, outside = [], []
    for page, text in PAGES.items():
        source = [text]
        names["link_notebooks"](None, page, source)
        for link in relative_links(source[0]) if page.startswith("docs/") else ():
            target = os.path.normpath(Path(page).parent / link)
            targets.append(target)
            if not (target.startswith("docs/") and (ROOT / re.sub("^docs/notebooks", "notebooks", target)).exists()):
                outside.append((page, link))
    assert sum(target.startswith("docs/notebooks/") for target in targets) >= 3
    assert outside == []


def test_a_page_says_how_to_install_what_its_examples_import():
    """Each library is required by the package, in an extra that the page names, or in a call of pip there."""

    def names(requirements):
        found = (re.match(r"[\w.-]+", one).group().lower() for one in requirements)
        return {"sklearn" if name == "scikit-learn" else name for name in found}

    n_imports, unsaid = 0, []
    for page, text in PAGES.items():
        named = set(re.findall(r"[a-z]+", " ".join(re.findall(r"(?:`|aucforest\[|\.\[)([a-z,]+)(?:`|\])", text))))
        known = set(re.findall(r"[a-z]+", " ".join(re.findall(r"pip install ([^`\n]+)`?", text))))
        for extra in named & {*EXTRAS} - {"dev", "docs", "peers"}:
            known |= names(EXTRAS[extra])
        modules = set(re.findall(r"^>>> (?:import|from) (\w+)", text, flags=re.MULTILINE))
        modules -= {"aucforest", *sys.stdlib_module_names}
        n_imports += len(modules)
        unsaid += [(page, module) for module in modules - known - names(PROJECT["dependencies"])]
    assert n_imports > 20
    assert unsaid == []


def test_every_public_name_is_in_the_reference():
    public = {name: getattr(aucforest, name) for name in aucforest.__all__}
    parts = {name: value for name, value in public.items() if inspect.ismodule(value)}
    assert len(parts) > 4
    names = {*public} - {*parts}
    names.update(*(part.__all__ for part in parts.values()))
    reference = "\n".join(text for page, text in PAGES.items() if page.startswith("docs/reference/"))
    assert names == set(re.findall(r"^   (\w+)$", reference, flags=re.MULTILINE))


def test_every_module_is_in_the_architecture_with_its_first_sentence():
    package, text = ROOT / "src" / "aucforest", PAGES["docs/architecture.md"]
    parts = re.split(r"^### `(.*)`$", text, flags=re.MULTILINE)[1:]
    chapters = dict(zip(parts[::2], parts[1::2]))
    for path in package.rglob("*.py"):
        if path.name != "__init__.py":
            sentence = ast.get_docstring(ast.parse(path.read_text())).split("\n\n")[0]
            folder, *rest = path.relative_to(package).parts
            chapter, name = (chapters[folder], "/".join(rest)) if rest else (text, folder)
            assert f"- `{name}`: {' '.join(sentence.split())}" in chapter  # the page may say more


def test_every_extra_is_in_the_table():
    assert sorted(EXTRAS) == sorted(re.findall(r"^\| `(\w+)` \|", PAGES["docs/install.md"], flags=re.MULTILINE))


def test_pages_that_a_repository_shows_have_no_syntax_of_sphinx():
    """It would be shown as it is written. Those left out are contents and inclusions for the built pages only."""
    built = re.compile(r"docs/(index|notebooks|changes|contributing|(howto|mathematics)/index|reference/\w+)\.md")
    syntax = re.compile(r"\{[\w:-]+\}`|^`{3,}\{|^:::|^\.\. [\w-]+::", flags=re.MULTILINE)
    found = {page: syntax.findall(text) for page, text in PAGES.items() if not built.fullmatch(page)}
    assert len(found) > 40
    assert {page: some for page, some in found.items() if some} == {}


def test_pictures_have_a_text_and_a_page():
    pictures = [picture for text in PAGES.values() for picture in re.findall(r"!\[([^\]]*)\]\(\S*?([^/\s]+)\)", text)]
    assert "" not in {text for text, _ in pictures}
    assert {name for _, name in pictures} == {path.name for path in (ROOT / "docs" / "images").iterdir()}
