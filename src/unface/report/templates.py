"""What every page is made with: its templates, the files that become part of it, its policy, and how it is written."""

import base64
import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unface.auditing.words import count, percent, rate
from unface.output.write import write_file


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """Write a page, whole or not at all; replaces what is there."""
    write_file(Path(path), page.encode(), option="--out")
    return Path(path)


@cache
def environment() -> Environment:
    """Templates of the page, escaping everything that is put into them."""
    made = Environment(
        loader=PackageLoader("unface.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(percent=percent, rate=rate, count=count, data=_data)
    return made


@cache
def page_file(name: str) -> str:
    """A file that becomes part of the page."""
    return files("unface.report").joinpath("page", name).read_text(encoding="utf-8").strip()


def policy(script: str) -> str:
    """Nothing is fetched from anywhere, and no script runs but ours, known by its hash."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    rules = ("default-src 'none'", "style-src 'unsafe-inline'", f"script-src 'sha256-{digest}'", "img-src data:")
    return "; ".join([*rules, "base-uri 'none'", "form-action 'none'"])


def _data(value: object) -> Markup:
    """JSON that cannot end the element it stands in."""
    text = json.dumps(value, ensure_ascii=False)
    for sign, escaped in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, escaped)
    return Markup(text)
