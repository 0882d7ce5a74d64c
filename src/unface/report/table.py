"""An audit on the terminal: verdict first, then the table, then what to know about it."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from unface.gate import GateResult, print_decision
from unface.page.tables import print_safely, remarks
from unface.result.audit import AuditResult
from unface.result.parts import parts_of
from unface.result.words import count, interval, percent, rate


def print_audit(result: AuditResult, console: Console, decision: GateResult | None = None) -> None:
    """Print an audit: a policy's verdict, what each space leaves the attacker, then the raw space probe by probe."""
    if decision is not None:
        print_decision(decision, console)
    print_safely(console, _verdict(result))
    print_safely(console, Text(_caption(result)), style="dim")
    console.print()
    leakage, *others = parts_of(result)
    for shown in (shown for part in (*others, leakage) for shown in part.terminal(result)):
        print_safely(console, shown)
        console.print()
    print_safely(console, Group(*_below(result)), highlight=False)


def _verdict(result: AuditResult) -> RenderableType:
    style = "green" if result.valid else "red"
    return Panel(Text(result.verdict), title="verdict" if result.valid else "invalid", border_style=style, expand=False)


def _caption(result: AuditResult) -> str:
    source, curated, roles = result.source, result.curated, result.roles
    dropped = (
        f", {count(curated.identities_dropped, 'person', 'people')} left out" if curated.identities_dropped else ""
    )
    if curated.rows_dropped:
        dropped += f", {count(curated.rows_dropped, 'image')} not used"
    return (
        f"{source.name}: {count(source.rows, 'vector')} of {source.dim} dimensions, "
        f"{count(source.identities, 'identity', 'identities')}.  "
        f"Used: {curated.words}{dropped}.  "
        f"Roles: fit {roles.fit}, train {roles.train}, calibrate {roles.calibrate}, test {roles.test}."
    )


def _below(result: AuditResult) -> Iterator[RenderableType]:
    controls = result.controls.shuffled_identities
    passed = sum(point.passed for point in controls)
    yield Text(
        f"◂ worst case: the probe that was best on calibrate identities. {100 * result.protocol.level:g} % intervals: "
        + ("identities resampled" if result.protocol.variant == "unface" else "spread over seeds, which under-covers")
        + (". ~: coarse." if any(p.resolution == "coarse" for p in result.raw.points) else "."),
        style="dim",
    )
    head = result.headline
    if head is not None:
        reached = {space.name: point.achieved_far for space in result.spaces if (point := head.of(space))}
        listed = ", ".join(f"{name} {rate(float(f'{far.value:.2g}'))}" for name, far in reached.items() if far)
        yield Text(f"× chance: TAR / target FAR. Achieved where the target is {rate(head.far)}: {listed}.", style="dim")
        if not result.curated.equal:
            means = [(space.name, point.tar_over_people) for space in result.spaces if (point := head.of(space))]
            listed = ", ".join(f"{name} {percent(mean)}" for name, mean in means if mean is not None)
            yield Text(f"Averaged over people instead of pairs, FAR {rate(head.far)}: {listed}.", style="dim")
        adjusted = {space.name: point.context_adjusted for space in result.spaces if (point := head.of(space))}
        shown = [f"{name} {found.words}" for name, found in adjusted.items() if found]
        column = next((found.context for found in adjusted.values() if found), None)
        if column is not None:
            yield Text(f"TAR adjusted for '{column}', k = {head.k}, FAR {rate(head.far)}: {', '.join(shown)}.")
        apart = {name: found.apart for name, found in adjusted.items() if found and found.apart}
        if apart:
            shown = [f"{name} {percent(one.value)} {interval(one.low, one.high)}" for name, one in apart.items()]
            yield Text(f"TAR of pairs from different groups ('{column}'): {', '.join(shown)}.")
    yield Text(
        f"Self-test of probes and pipeline, identities shuffled: {passed} of {len(controls)} at chance.",
        style="" if passed == len(controls) else "bold red",
    )
    yield from remarks(result.findings)
    for note in result.source.notes:
        yield Text(f"· reading: {note}", style="dim")
    yield from remarks(not_measured=result.not_measured)
