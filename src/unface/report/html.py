"""report.html: one file that needs nothing else, drawn from an audit alone."""

import os
from pathlib import Path

from markupsafe import Markup

from unface.auditing.schema import AuditResult
from unface.report.attribution_page import panel
from unface.report.comparisons import change_table, comparisons
from unface.report.curves import curve_figures
from unface.report.erasers import covered, eraser_table, spectrum_figures
from unface.report.figures import key_figures
from unface.report.frontier import frontiers, identity_figures
from unface.report.leakage import context_table, control_table, probe_tables, worst_tables
from unface.report.looks import looks
from unface.report.maps import map_figures
from unface.report.repeat import citation, repeat, sha256_of
from unface.report.sections import absent
from unface.report.templates import environment, page_file, policy, write_page
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
        attribution=None if result.attribution is None else panel([result.attribution], looks(result)),
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
