"""What the site needs beside mkdocs.yml: the pages are first of all files of the repository, and read there too.

A link to a folder, or out of docs/, becomes its text, for the site has neither; one that leads nowhere stops the build.
The page of every table is too long for the repository: it is rendered here, and links to the records lead to it.
"""

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

HERE = Path(__file__).resolve().parent
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)#:]+)(#[^)]*)?\)")
EXACT = re.compile(r"^(\s*`{3,}\w+) exact$", flags=re.MULTILINE)  # said to the tests; here it would spoil the block
EVERY_TABLE, RECORDS = "erasure-tables.md", "measured/erasure"


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """With the page of every table."""
    if str(HERE.parent) not in sys.path:  # the mkdocs command does not look where it is started
        sys.path.insert(0, str(HERE.parent))
    from docs.figures import rendered

    files.append(File.generated(config, EVERY_TABLE, content=rendered(EVERY_TABLE)))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: object) -> str:
    """A page of the repository as the site shows it."""
    if page.file.src_uri == EVERY_TABLE:
        page.meta["search"] = {"exclude": True}  # 300 kB of numbers that nobody looks for by word
    return LINK.sub(lambda link: shown(link, page.file.src_uri), EXACT.sub(r"\1", markdown))


def shown(link: re.Match[str], page: str) -> str:
    """A link of the site, or its text where the site has nothing to link to."""
    text, path, anchor = link[1], link[2], link[3] or ""
    if path == RECORDS:
        return f"[{text}]({EVERY_TABLE}{anchor})"
    target, outside = HERE / path, path.startswith("../")
    if outside and not target.exists():  # inside, mkdocs checks
        raise PluginError(f"docs/{page}: no {path} to link to; mend or remove the link")
    return text if outside or target.is_dir() else link[0]
