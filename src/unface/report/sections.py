"""Which parts of the page an audit has no data for, so that what is missing is said and never looks clean."""

from unface.auditing.schema import AuditResult


def absent(result: AuditResult) -> list[str]:
    """A few words for each part that is left out."""
    spaces = result.spaces[1:]
    over = {sweep.over for sweep in result.sweeps}
    parts = {
        "what an eraser leaves": bool(spaces),
        "whether an eraser beats controls of equal rank": any(space.changes for space in spaces),
        "curves over FAR": any(space.curves for space in result.spaces),
        "the frontier of privacy and usefulness over rank": "rank" in over,
        "what more fit identities would buy": "identities" in over,
        "a certificate of what is left to linear access": any(s.erasure and s.erasure.certificate for s in spaces),
        "whether an eraser carries to another set": bool(result.transfers),
        "maps before and after": bool(result.maps),
        "attribute swaps": bool(result.attribute_swaps),
        "usefulness kept": any(space.utility for space in spaces),
        "face-context attribution": result.attribution is not None,
        "same-shoot pairs apart from identity": any(p.context_adjusted for s in result.spaces for p in s.points),
    }
    return [name for name, there in parts.items() if not there]
