"""A file being written that counts and hashes what goes through it, and says when it is the writing that failed."""

import hashlib
import os
from contextlib import suppress
from typing import Protocol

from unface.data.files import reason
from unface.errors import UnfaceError

_AHEAD_BYTES = 16 << 20


class OutputError(UnfaceError):
    """Writing failed (a full disk, no permission): not the fault of one source file, so the others would fail too."""


class Writable(Protocol):
    """Files of Python and of Arrow."""

    def write(self, data: bytes | memoryview) -> object: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...


class Sink:
    """A file being written that counts and hashes what goes through it; ``on_disk`` it survives a power cut."""

    def __init__(self, file: Writable, called: str, *, on_disk: bool = False) -> None:
        self._file, self._called, self._digest, self._on_disk = file, called, hashlib.sha256(), on_disk
        self._begun = 0
        self.bytes = 0
        self.closed = False

    def write(self, data: bytes | memoryview) -> int:
        try:
            self._file.write(data)
        except Exception as error:
            raise OutputError(f"{self._called}: cannot be written ({reason(error)})") from None
        self._digest.update(data)
        size = len(data) if isinstance(data, bytes) else data.nbytes
        self.bytes += size
        if self._on_disk and self.bytes - self._begun >= _AHEAD_BYTES:
            self._begin_writing()
        return size

    def sha256(self) -> str:
        return self._digest.hexdigest()

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Nothing: whoever writes into it says by this that he is done, not that all went well."""

    def finish(self) -> None:
        self._file.flush()
        if self._on_disk:
            os.fsync(self._file.fileno())
        self.abandon()

    def abandon(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()

    def _begin_writing(self) -> None:
        """Without waiting for it: the disk works while the next rows are erased, and the flush at the end is short."""
        if hasattr(os, "posix_fadvise"):
            # Of pages not yet on disk Linux drops none at this word, but it begins to write them.
            with suppress(OSError):
                os.posix_fadvise(self._file.fileno(), self._begun, self.bytes - self._begun, os.POSIX_FADV_DONTNEED)
        self._begun = self.bytes
