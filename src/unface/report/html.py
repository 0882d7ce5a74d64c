"""report.html: one file that needs nothing else, drawn from an audit alone."""

import base64
import hashlib
import json
import os
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import NamedTemporaryFile

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from unface.auditing.schema import AuditResult
from unface.auditing.words import count, percent, rate
from unface.errors import UnfaceError
from unface.report.comparisons import change_table, comparisons
from unface.report.curves import curve_figures
from unface.report.erasers import covered, eraser_table, spectrum_figures
from unface.report.figures import key_figures
from unface.report.frontier import frontiers, identity_figures
from unface.report.leakage import context_table, control_table, probe_tables, worst_tables
from unface.report.maps import map_figures
from unface.report.repeat import citation, repeat, sha256_of
from unface.report.sections import absent
from unface.report.transfer import cosine_figure, transfer_tables
from unface.report.usefulness import swap_table, utility_table


def render_report(result: AuditResult) -> str:
    """The page; the same bytes for the same audit."""
    style, script = page_file("report.css"), page_file("report.js")
    page = environment().get_template("report.html.jinja")
    return page.render(
        result=result,
        figures=key_figures(result),
        worst=worst_tables(result),
        probes=probe_tables(result),
        context=context_table(result),
        control=control_table(result),
        compared=comparisons(result),
        changes=change_table(result),
        curves=curve_figures(result),
        frontiers=frontiers(result),
        identities=identity_figures(result),
        erasers=eraser_table(result),
        covered=covered(result),
        spectra=spectrum_figures(result),
        transfers=[(one, transfer_tables(one), cosine_figure(one)) for one in result.transfers],
        maps=map_figures(result),
        swaps=swap_table(result),
        utility=utility_table(result),
        absent=absent(result),
        repeat=repeat(result),
        citation=citation(result),
        audit_sha256=sha256_of(result),
        style=Markup(style),
        script=Markup(script),
        policy=policy(script),
    )


def write_report(result: AuditResult, path: str | os.PathLike[str]) -> Path:
    """Write the page, whole or not at all; replaces what is there."""
    return write_page(render_report(result), path)


def write_page(page: str, path: str | os.PathLike[str]) -> Path:
    """The same for any page."""
    path = Path(path)
    part: Path | None = None
    try:
        with NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            part = Path(file.name)
            file.write(page)
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        raise UnfaceError(f"{path}: cannot be written ({error.strerror}); choose another --out") from None
    finally:
        if part is not None:
            part.unlink(missing_ok=True)
    return path


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
