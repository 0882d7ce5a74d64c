"""If these fail, a broken package of somebody else ends a command in a traceback, or passes for what it is not."""

from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints

import pytest

from tests.refusals.table import refused
from unface import UnfaceError, load_encoder
from unface.erase.named import make_eraser
from unface.functions import registered
from unface.invert.attacks import load_attack as load_inversion
from unface.prior import load_prior
from unface.probe import pick_probes
from unface.result.parts import installed_part
from unface.stores import open_store
from unface.validate.attacks import load_attack
from unface.validate.targets import open_target

USES: dict[str, Callable[[str], object]] = {
    "encoder": load_encoder,
    "eraser": lambda name: make_eraser(name, 3),
    "part": installed_part,
    "prior": load_prior,
    "probe": lambda name: pick_probes([name]),
    "store": lambda name: open_store(f"{name}://somewhere"),
    "target": lambda name: open_target(f"{name}:somewhere"),
}


def fails(*_: object, **__: object) -> None:
    raise ValueError("no key\nin the safe")


def refuses(*_: object, **__: object) -> None:
    raise UnfaceError("somebody's own line")


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    def installed(what: str, function: str) -> None:
        found = EntryPoints([EntryPoint("theirs", f"{__name__}:{function}", f"unface.{what}s")])
        monkeypatch.setattr("unface.functions.entry_points", found.select)

    return installed


@pytest.mark.parametrize("what", USES)
def test_a_package_that_cannot_be_loaded_is_one_line_wherever_it_is_named(
    what: str, install: Callable[[str, str], None]
) -> None:
    install(what, "gone")
    with refused("name", f"{what} 'theirs'", f"{__name__}:gone", "'gone'"):
        USES[what]("theirs")


@pytest.mark.parametrize("what", [what for what in USES if what != "part"])
def test_what_fails_when_it_is_called_is_one_line_and_its_own_line_is_kept(
    what: str, install: Callable[[str, str], None]
) -> None:
    install(what, "fails")
    with refused("name", f"{what} 'theirs'"):
        USES[what]("theirs")
    install(what, "refuses")
    with refused("plug-in"):
        USES[what]("theirs")


@pytest.mark.parametrize("load", [load_attack, load_inversion])
def test_an_attack_of_neither_kind_is_refused(
    load: Callable[[str], object], install: Callable[[str, str], None]
) -> None:
    install("attack", "USES")
    with refused("name", "attack 'theirs'", "'dict'"):
        load("theirs")


def test_a_name_that_nobody_registered_is_nothing() -> None:
    assert registered("probe", "nobody", lambda make: make()) is None


@pytest.mark.parametrize(
    ("what", "use"),
    [("attack", load_attack), ("attack", load_inversion), ("eraser", USES["eraser"]), ("probe", USES["probe"])],
)
def test_who_names_nothing_is_told_what_packages_register_too(
    what: str, use: Callable[[str], object], install: Callable[[str, str], None]
) -> None:
    install(what, "fails")
    with refused("name", None, "'another'"):
        use("another")
