"""What a resumable run was asked to do: the same command continues it, any other is refused."""

import json
from collections.abc import Iterable, Mapping

from unface.errors import UnfaceError
from unface.output.place import OWN, Place

MANIFEST = f"{OWN}/manifest.json"
START_OVER = "--force to start over"


def agree(place: Place, plan: Mapping[str, object], *, otherwise: str = START_OVER) -> None:
    """Begin with this plan, or continue a run that was begun with it. ``otherwise`` is the advice for another plan."""
    begun = read_plan(place)
    if begun is None:
        write_plan(place, plan)
    else:
        require_same(place.shown, begun, plan, otherwise=otherwise)


def read_plan(place: Place, name: str = MANIFEST) -> dict[str, object] | None:
    """The plan that the run in ``place`` was begun with; None if there is none."""
    content = place.read(name)
    if content is None:
        return None
    try:
        plan = json.loads(content)
    except (ValueError, RecursionError):
        plan = None
    if not isinstance(plan, dict):
        raise unreadable(place, name)
    return plan


def write_plan(place: Place, plan: Mapping[str, object]) -> None:
    place.write(MANIFEST, (json.dumps(plan, indent=2) + "\n").encode())


def require_same(
    shown: str, begun: Mapping[str, object], plan: Mapping[str, object], *, otherwise: str = START_OVER
) -> None:
    """Refuse another job's leftovers, naming the settings that differ."""
    different = [name.replace("_", " ") for name in plan if begun.get(name) != plan[name]]
    if different:
        raise other_job(shown, different, otherwise=otherwise)


def other_job(shown: str, different: Iterable[str], *, otherwise: str = START_OVER) -> UnfaceError:
    """The refusal itself."""
    settings = ", ".join(different)
    return UnfaceError(
        f"{shown}: was begun with different settings ({settings}); give the same command, or {otherwise}"
    )


def unreadable(place: Place, name: str = MANIFEST) -> UnfaceError:
    """The refusal of a damaged plan."""
    return UnfaceError(f"{place.shown}: {name} cannot be read; remove the folder and start again")
