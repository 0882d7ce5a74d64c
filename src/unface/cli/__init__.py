"""The command line: one file for each verb, no arithmetic."""

import os
import signal
import sys
from io import TextIOWrapper

from unface.errors import UnfaceError, printable, reason

__all__ = ["main"]

_EXTRAS = {
    "torch": "torch",
    **dict.fromkeys(("PIL", "cv2", "onnx", "onnxruntime"), "images"),
    **dict.fromkeys(("faiss", "lance", "qdrant_client", "psycopg"), "stores"),
    **dict.fromkeys(("huggingface_hub", "transformers"), "hub"),
    "ray": "ray",
    "obstore": "s3",
}
"""Modules that some commands need, and the extra that installs each."""


def main() -> None:
    """Run the command line: 0 done, 1 bad input or failed work in one line, 2 wrong usage; the gate also 3 and 4."""
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        _require_streams()
        from unface.cli.app import app  # here, since what it imports takes longer than an impatient hand

        app(_memory_first(sys.argv[1:]))
    except UnfaceError as error:
        sys.exit(_said(str(error), 1))
    except _Interrupted:
        sys.exit(_said("interrupted; no file was left half-written", 130))
    except OSError as error:
        where = f"{error.filename}: cannot be opened or written" if error.filename else "cannot write the output"
        sys.exit(_said(f"{where} ({reason(error)}); see to that and give the same command again", 1))
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module not in _EXTRAS:
            raise
        sys.exit(_said(f"this needs {module}, not installed; run pip install 'unface[{_EXTRAS[module]}]'", 1))
    except MemoryError:
        from unface.memory import beyond_memory

        sys.exit(_said(str(beyond_memory()), 1))
    finally:
        signal.signal(signal.SIGINT, before)


def _memory_first(arguments: list[str]) -> list[str]:
    """``--memory`` belongs to all commands, so it is the program's own option; people write it after the command."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    for at, word in enumerate(options):
        if word == "--memory" or word.startswith("--memory="):
            end = at + (2 if word == "--memory" else 1)
            if end > len(options):
                return [word]  # without a size: no other word may be taken for it
            return arguments[at:end] + arguments[:at] + arguments[end:]
    return arguments


class _Interrupted(BaseException):
    """Ctrl-C, by a name that typer does not swallow."""


def _interrupt(*_: object) -> None:
    raise _Interrupted


def _require_streams() -> None:
    """A stream that the caller closed becomes one to nowhere, or the next file opened would be taken for it."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without × and ◂ is no reason to fail


def _said(text: str, code: int) -> int:
    print(f"unface: {printable(' '.join(text.split()))}", file=sys.stderr)
    return code
