"""Options that more than one verb has, by one name and read one way; and ``--config``, which holds any of them."""

from pathlib import Path

import typer

from unface.errors import UnfaceError


def numbers(values: list[str], option: str) -> list[float]:
    """``--far 1e-3 --far 1e-4`` and ``--far 1e-3,1e-4`` alike."""
    read = []
    for part in ",".join(values).split(","):
        try:
            read.append(float(part))
        except ValueError:
            raise UnfaceError(f"{option}: {part!r} is not a number") from None
    return read


def whole_numbers(values: list[str], option: str) -> list[int]:
    """The same for counts."""
    read = numbers(values, option)
    for number in read:
        if not number.is_integer():
            raise UnfaceError(f"{option}: {number:g} is not a whole number")
    return [int(number) for number in read]


def names(values: list[str]) -> list[str]:
    """``--probe cosine --probe ridge`` and ``--probe cosine,ridge`` alike."""
    return [part.strip() for part in ",".join(values).split(",")] if values else []


def rank_of(rank: int | None, energy: float | None, target: str | None) -> int | float | str | None:
    """The one of the three that was given."""
    given = [value for value in (rank, energy, target) if value is not None]
    if len(given) > 1:
        raise UnfaceError("--rank, --energy and --target each set how many dimensions are removed; give one")
    return given[0] if given else None


def _read_config(context: typer.Context, path: Path | None) -> Path | None:
    """Fill in options from a TOML file whose keys are their names; the command line goes before it."""
    if path is None:
        return None
    from unface.result.file import read_toml

    content = read_toml(path)
    parameters = {option: one for one in context.command.params for option in (*one.opts, *one.secondary_opts)}
    defaults: dict[str, object] = {}
    for key, value in content.items():
        parameter = parameters.get(f"--{key}")
        if parameter is None or parameter.name is None or key == "config":
            known = ", ".join(sorted(option.removeprefix("--") for option in parameters if option != "--config"))
            raise UnfaceError(f"{path}: unknown key {key!r}; keys are the options of the command: {known}")
        if isinstance(value, dict) or (
            isinstance(value, list) and any(isinstance(item, list | dict) for item in value)
        ):
            raise UnfaceError(f"{path}: {key}: expected a value or a list of values, not a table")
        is_switch = getattr(parameter, "is_flag", False)
        if is_switch != isinstance(value, bool):
            expected = "true or false" if is_switch else f"a value for --{key}"
            raise UnfaceError(f"{path}: {key}: {value!r} is not {expected}")
        if parameter.name in defaults:
            raise UnfaceError(f"{path}: {key}: is set twice; leave one of the two out")
        if f"--{key}" in parameter.secondary_opts:  # no-sweep = true
            value = not value
        if parameter.multiple:
            value = [str(item) for item in (value if isinstance(value, list) else [value])]
        try:
            parameter.process_value(context, value)
        except typer.BadParameter as error:
            raise UnfaceError(f"{path}: {key}: {error.message.rstrip('.')}") from None
        defaults[parameter.name] = value
    context.default_map = {**(context.default_map or {}), **defaults}
    return path


def miss_of(gate: str | None, miss: float | None) -> float:
    """The share of faces that a gate may miss."""
    if gate is None and miss is not None:
        raise UnfaceError("--miss: is about a face gate; name its vectors without faces with --gate")
    return 1e-3 if miss is None else miss


CONFIG = typer.Option(
    None, "--config", help="TOML file of these options, such as far = [1e-3].", callback=_read_config, is_eager=True
)
POLICY = typer.Option(
    None, "--policy", help="TOML file of rules; exit 0 if they hold, 3 if one fails, 4 if inconclusive."
)
OUT = typer.Option(..., "--out", help="Folder for audit.json and report.html; made if missing.")
FORCE = typer.Option(False, "--force", help="Overwrite what is there.")
JSON = typer.Option(False, "--json", help="Print audit.json on standard output instead of the table.")
HISTORY = typer.Option(
    None, "--history", metavar="FILE", help="Also keep this result's numbers in FILE, one JSON line for each result."
)
QUIET = typer.Option(False, "--quiet", help="Print nothing but errors.")
THREADS = typer.Option(None, "--threads", min=1, help="Threads to use [default: all cores]; never changes a result.")
SEED = typer.Option(0, "--seed", min=0, help="Seed of every random choice.")
RANK = typer.Option(None, "--rank", min=1, help="Dimensions to remove [default: 3/8 of them].")
ENERGY = typer.Option(None, "--energy", help="Remove this share of the class means' variance.")
TARGET = typer.Option(
    None, "--target", help="Smallest rank with a worst case of at most TAR@FAR on calibrate, such as 0.05@1e-4."
)
KEEP = typer.Option(None, "--keep", min=1, help="Dimensions that keeper keeps [default: 1/8 of them].")
MU = typer.Option(None, "--mu", min=0, help="Weight of people against copies, for keeper [default: 0.3].")
SPARE = typer.Option(None, "--spare", help="Vectors of a task for utility-pca, utility-leace or keeper to preserve.")
COPIES = typer.Option(None, "--copies", help="Altered copies for keeper, with the ids of their originals in 'copy_of'.")
GATE = typer.Option(None, "--gate", help="Vectors without faces: erase only what a gate takes for a face.")
MISS = typer.Option(None, "--miss", help="Upper bound of the share of faces that --gate may miss [default: 1e-3].")
AUGMENT = typer.Option(
    0, "--augment", min=0, help="Also make this many altered copies of each picture, with its id in 'copy_of'."
)
IDENTITY_COLUMN = typer.Option("identity", "--identity-column", help="Column of identities.")
VECTOR_COLUMN = typer.Option("vector", "--vector-column", help="Column of vectors (npz: vectors).")
ID_COLUMN = typer.Option("id", "--id-column", help="Column of row ids; rows are numbered without one.")
SAMPLE = typer.Option(None, "--sample", min=2, help="Read only this many people, drawn by --seed, with all their rows.")
BAD_ROWS = typer.Option(
    "fail", "--bad-rows", help="Rows with a null, NaN, Inf or zero vector or no identity: fail, drop, or null."
)
ACCEPT_LICENCE = typer.Option(False, "--accept-licence", help="Accept weights for research use only.")
