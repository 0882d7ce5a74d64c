"""A file being written that counts and hashes what goes through it, and says when it is the writing that failed."""

import hashlib
import os
from typing import Protocol

from unface.data.files import reason
from unface.errors import UnfaceError


class OutputError(UnfaceError):
    """Writing failed (a full disk, no permission): not the fault of one source file, so the others would fail too."""


class Writable(Protocol):
    """Files of Python and of Arrow."""

    def write(self, data: bytes | memoryview) -> object: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...
    def fileno(self) -> int: ...


class Sink:
    """A file being written that counts and hashes what goes through it."""

    def __init__(self, file: "Writable", called: str) -> None:
        self._file, self._called, self._digest = file, called, hashlib.sha256()
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
        return size

    def sha256(self) -> str:
        return self._digest.hexdigest()

    def tell(self) -> int:
        return self.bytes

    def flush(self) -> None:
        self._file.flush()

    def close(self) -> None:
        """Nothing: whoever writes into it says by this that he is done, not that all went well."""

    def finish(self, *, sync: bool) -> None:
        self._file.flush()
        if sync:
            os.fsync(self._file.fileno())
        self.abandon()

    def abandon(self) -> None:
        if not self.closed:
            self.closed = True
            self._file.close()
