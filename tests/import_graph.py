"""Which tests a changed file can reach: the imports of every module, read from the source, followed upwards.

Names are followed to the file that defines them: ``from unface.erase import ISP`` leads to ``class_means.py``, not to
everything that ``unface.erase`` lists. Imports inside functions count, and so do modules that are named in a string.
"""

import ast
import fnmatch
import json
import re
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

FOLDERS = ("src", "tests", "studies", "benchmarks", "docs")
_VERSION = 1
_BEYOND = 1_000  # distance of what is not reached


@dataclass(frozen=True)
class Facts:
    """What one file says of others."""

    names: list[str]
    """Dotted names that it imports, with the attribute that it takes: ``unface.erase.ISP``."""
    mentioned: list[str]
    """Dotted names in strings, such as those of modules loaded on first use."""
    exports: dict[str, str]
    """Names bound by ``from … import``, and where they come from."""
    words: list[str]
    """Names of files and folders in its strings."""


def read_facts(text: str, package: str) -> Facts:
    """Read the imports of a file of ``package``; a file that cannot be parsed says nothing."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return Facts([], [], {}, [])
    names: set[str] = set()
    mentioned: set[str] = set()
    words: set[str] = set()
    exports: dict[str, str] = {}
    aliases: dict[str, str] = {}
    chains: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                names.add(alias.name)
                aliases[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")
            base = ".".join(parts[: len(parts) - node.level + 1]) if node.level else ""
            origin = ".".join(part for part in (base, node.module) if part)
            for alias in node.names:
                names.add(f"{origin}.{alias.name}")
                exports[alias.asname or alias.name] = f"{origin}.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name | ast.Attribute):
            chains.append(ast.unparse(node))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            _read_string(node.value, mentioned, words)
    for chain in chains:
        first, _, rest = chain.partition(".")
        if first in aliases:
            names.add(f"{aliases[first]}.{rest}")
    return Facts(sorted(names), sorted(mentioned), exports, sorted(words))


def _read_string(text: str, mentioned: set[str], words: set[str]) -> None:
    if re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*\.?", text):
        mentioned.add(text.rstrip("."))
    elif "import " in text:  # code that is run in a process of its own
        inner = read_facts(text, "")
        mentioned.update(inner.names, inner.mentioned)
    if len(text) < 200 and not re.search(r"\s", text):
        words.update(part for part in text.split("/") if re.fullmatch(r"[\w.*-]+", part))


@dataclass
class Graph:
    """The modules of a repository and what each imports."""

    root: Path
    files: dict[str, str]
    """Path of each module, by its dotted name."""
    facts: dict[str, Facts]
    edges: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Modules that import each module."""
    touched: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Modules that name each package on their way to something below it."""

    def __post_init__(self) -> None:
        for module, facts in self.facts.items():
            for name in facts.names:
                self._link(module, name, whole=name.endswith(".*"))
            for name in facts.mentioned:
                self._link(module, name, whole=True)

    @cached_property
    def modules(self) -> dict[str, str]:
        """Name of each module, by its path."""
        return {path: name for name, path in self.files.items()}

    @property
    def tests(self) -> list[str]:
        """Paths of all test files."""
        return sorted(path for path in self.modules if _is_test(path))

    def distances(self, changed: Iterable[str]) -> dict[str, int]:
        """Steps from the changed files to each test file that they can reach."""
        seeds: dict[str, int] = {}
        for path in changed:
            for module, distance in self._seeds(PurePosixPath(path)):
                seeds[module] = min(distance, seeds.get(module, _BEYOND))
        reached = dict(seeds)
        queue = deque(sorted(seeds, key=lambda module: seeds[module]))
        while queue:
            module = queue.popleft()
            for above in self.edges.get(module, ()):
                if reached[module] + 1 < reached.get(above, _BEYOND):
                    reached[above] = reached[module] + 1
                    queue.append(above)
        return {self.files[name]: far for name, far in reached.items() if _is_test(self.files[name])}

    def _seeds(self, path: PurePosixPath) -> Iterator[tuple[str, int]]:
        module = self.modules.get(str(path))
        if module is not None and path.name not in ("__init__.py", "conftest.py"):
            yield module, 0
        elif module is not None:
            yield module, 0
            yield from ((name, 1) for name in self.touched[module])
            yield from self._below(path.parent)
        else:
            yield from self._seeds_of_data(path)
        if path.suffix == ".py":  # tests of the source as text
            yield from ((name, 3) for name in self._naming(path.parts[0]) if _is_test(self.files[name]))

    def _seeds_of_data(self, path: PurePosixPath) -> Iterator[tuple[str, int]]:
        """Who names the file; if nobody does, the package it lies in; and who names its folder."""
        naming = self._naming(path.name)
        yield from ((name, 1) for name in naming)
        inits = (f"{folder}/__init__.py" for folder in path.parents)
        package = next((self.modules[init] for init in inits if init in self.modules), None)
        if package is None and len(path.parts) > 1:
            yield from ((name, 2) for name in self._naming(path.parts[0]))
        elif package is not None and all(_is_test(self.files[name]) for name in naming):
            yield package, 1
            yield from ((name, 1) for name in self.touched[package])

    def _below(self, folder: PurePosixPath) -> Iterator[tuple[str, int]]:
        return ((name, 1) for path, name in self.modules.items() if PurePosixPath(path).is_relative_to(folder))

    def _naming(self, word: str) -> list[str]:
        return [
            name
            for name, facts in self.facts.items()
            if any(word == own or ("*" in own and "." in own and fnmatch.fnmatch(word, own)) for own in facts.words)
        ]

    def _link(self, module: str, dotted: str, *, whole: bool) -> None:
        for _ in range(20):  # a name that is passed on in a circle ends here
            found, rest = self._split(dotted)
            if found is None:
                return
            if found != module:
                self.touched[found].add(module)
            for parent in PurePosixPath(found.replace(".", "/")).parents:
                self.touched[str(parent).replace("/", ".")].add(module)
            first = rest.partition(".")[0]
            is_package = self.files[found].endswith("/__init__.py")
            origin = self.facts[found].exports.get(first) if is_package and found in self.facts else None
            if origin is not None and origin != dotted and self._split(origin)[0] is not None:
                dotted = origin
                continue
            if whole and not rest and f"{found}.__main__" in self.files:
                self.edges[f"{found}.__main__"].add(module)
            elif (rest or whole or not is_package) and found != module:
                self.edges[found].add(module)
            return

    def _split(self, dotted: str) -> tuple[str | None, str]:
        """The longest module that a dotted name begins with, and the rest."""
        parts = dotted.split(".")
        for end in range(len(parts), 0, -1):
            if (name := ".".join(parts[:end])) in self.files:
                return name, ".".join(parts[end:])
        return None, dotted


def read_graph(root: Path, deleted: Iterable[str] = (), cache: Path | None = None) -> Graph:
    """Read the imports of every module below ``root``; deleted files are still found by those that import them."""
    known: dict[str, list[object]] = {}
    if cache is not None:
        try:
            held = json.loads(cache.read_text(encoding="utf-8"))
            known = held["files"] if held["version"] == _VERSION else {}
        except (OSError, ValueError, KeyError, TypeError):
            known = {}
    files: dict[str, str] = {}
    facts: dict[str, Facts] = {}
    kept: dict[str, list[object]] = {}
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            path = file.relative_to(root).as_posix()
            module = _name(path)
            state = file.stat()
            stamp = f"{state.st_mtime_ns} {state.st_size}"
            held = known.get(path)
            if held is None or held[0] != stamp:
                package = module if file.name == "__init__.py" else module.rpartition(".")[0]
                held = [stamp, vars(read_facts(file.read_text(encoding="utf-8", errors="replace"), package))]
            files[module], kept[path] = path, held
            facts[module] = Facts(**held[1])
    for path in deleted:
        if path.endswith(".py"):
            files.setdefault(_name(path), path)
    if cache is not None and kept != known:
        cache.parent.mkdir(parents=True, exist_ok=True)
        new = cache.with_suffix(".new")
        new.write_text(json.dumps({"version": _VERSION, "files": kept}), encoding="utf-8")
        new.replace(cache)
    return Graph(root, files, facts)


def _name(path: str) -> str:
    parts = PurePosixPath(path).with_suffix("").parts
    parts = parts[1:] if parts[0] == "src" else parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def _is_test(path: str) -> bool:
    return path.startswith("tests/") and PurePosixPath(path).name.startswith("test_")
