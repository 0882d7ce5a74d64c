"""What the site needs beside mkdocs.yml: the pages are first of all files of the repository, and read there too.

A link to a folder, or out of docs/, becomes its text, for the site has neither; one that leads nowhere stops the build.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError

HERE = Path(__file__).parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")
EXACT = re.compile(r"^(\s*`{3,}\w+) exact$", flags=re.MULTILINE)  # said to the tests; here it would spoil the block
COMMENT = re.compile(r"<!--.*?-->", flags=re.DOTALL)  # says which number is filled in; here it would cut a list in two
UNSEARCHED = {"erasure-tables.md"}  # 300 kB of numbers that nobody looks for by word


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    if page.file.src_uri in UNSEARCHED:
        page.meta["search"] = {"exclude": True}
    return LINK.sub(lambda link: shown(link, page.file.src_uri), EXACT.sub(r"\1", COMMENT.sub("", markdown)))


def shown(link: re.Match[str], page: str) -> str:
    target, outside = HERE / link[2], link[2].startswith("../")
    if outside and not target.exists():  # inside, mkdocs sees to it
        raise PluginError(f"docs/{page}: no {link[2]} to link to; mend or remove the link")
    return link[1] if outside or target.is_dir() else link[0]
