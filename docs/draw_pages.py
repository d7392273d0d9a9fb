"""Draw the pictures of the pages, each with the example above it.

    python docs/draw_pages.py [docs/gallery.md ...]

A picture that directly follows a block of examples is what they draw. The examples of a page are run in order, so that
later ones have the names of earlier ones, as a reader has who types them.
"""

import doctest
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(>>> .*?)^```\n(?:\n!\[[^\]]+\]\(([^)]+)\))?", flags=re.MULTILINE | re.DOTALL)
STYLE = {"figure.figsize": (6.4, 3.8), "axes.spines.top": False, "axes.spines.right": False}


def draw(page):
    """Run the examples of a page as far as its last picture, save what those before a picture draw, count failures."""
    blocks = BLOCK.findall(page.read_text())
    while blocks and not blocks[-1][1]:
        blocks.pop()
    parser, names = doctest.DocTestParser(), {}
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    for source, picture in blocks:
        plt.close("all")
        examples = parser.get_doctest(source, {}, str(page), str(page), 0)
        examples.globs = names  # it would copy them
        runner.run(examples, clear_globs=False)
        if picture:
            path = (page.parent / picture).resolve()
            # without the version of matplotlib, which would change the file
            plt.savefig(path, dpi=110, metadata={"Software": None}, pil_kwargs={"optimize": True})
            print(path)
    return runner.failures


def main():
    plt.switch_backend("agg")
    plt.rcParams.update(STYLE)
    pages = [Path(name) for name in sys.argv[1:]] or sorted(HERE.rglob("*.md"))
    sys.exit(sum(map(draw, pages)) > 0)


if __name__ == "__main__":
    main()
