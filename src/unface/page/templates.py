"""What every page is made with: its templates, the files that become part of it, and its content security policy."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from unface.result.words import ONE_WORD, count, percent, rate


def render(template: str, **values: object) -> Markup:
    """A template of this folder by its name, or of another package as ``package:name``; values are escaped."""
    return Markup(_environment().get_template(template).render(**values))


def render_page(template: str, *, script: str = "", **values: object) -> str:
    """A whole page: one file that loads nothing."""
    style = Markup(page_file("report.css"))
    page = str(render(template, style=style, script=Markup(script), policy=_policy(script), **values))
    return _unbroken(page)


@cache
def page_file(name: str) -> str:
    """A file that becomes part of a page."""
    return _source(name).strip()


_VERBATIM = ("style", "script", "title", "pre", "code", "svg")


def _unbroken(page: str) -> str:
    """The page with ``ONE_WORD`` in spans that do not wrap; names are escaped, so that every < is ours."""
    pieces, verbatim = [], ""
    for piece in re.split(r"(<[^>]*>)", page):
        if not piece.startswith("<"):
            pieces.append(piece if verbatim else ONE_WORD.sub(r'<span class="one">\g<0></span>', piece))
            continue
        tag = re.match(r"</?([a-z]+)", piece)
        name = tag[1] if tag else ""
        if verbatim == name and piece.startswith("</"):
            verbatim = ""
        elif not verbatim and name in _VERBATIM and not piece.startswith("</"):
            verbatim = name
        pieces.append(piece)
    return "".join(pieces)


def _source(name: str) -> str:
    package, _, file = name.rpartition(":")
    return files(package or "unface.page").joinpath(file).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    """Escapes everything that is put into a template."""
    made = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(percent=percent, rate=rate, count=count, data=_data)
    return made


def _policy(script: str) -> str:
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
