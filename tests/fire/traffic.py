"""Clients that insert, update and delete rows while a run is at work, and what a store must hold after them."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tests.stores.contract import raw_vectors

POOL = 8192


class Pool:
    """The raw vector of each version of each row; each trial has another pool, to tell its bytes from earlier ones."""

    def __init__(self, seed: int) -> None:
        self.vectors = raw_vectors(POOL, seed=seed)

    def raw(self, row: int, version: int) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self.vectors[(row + 5003 * version) % POOL]
        return vector


class Session(Protocol):
    """One client with its own connection; each call is one transaction."""

    def insert(self, row: int, version: int, vector: NDArray[np.float32]) -> None: ...

    def update(self, row: int, version: int, vector: NDArray[np.float32]) -> None: ...

    def relabel(self, row: int) -> None:
        """Change something else than the vector."""
        ...

    def delete(self, row: int) -> None: ...

    def version_of(self, row: int) -> int | None:
        """None if there is no such row."""
        ...

    def close(self) -> None: ...


@dataclass
class Truth:
    """What was committed. Each row belongs to one client, so nobody else changes what it knows about it."""

    versions: dict[int, int | None]
    written: dict[tuple[int, int], float] = field(default_factory=dict)
    """When a raw vector was certainly committed, by row and version."""
    faults: list[str] = field(default_factory=list)
    changes: int = 0


class Traffic:
    """Clients that write until they are stopped. They begin quiet."""

    def __init__(self, connect: Callable[[], Session], pool: Pool, rows: int, clients: int, seed: int, pause: float):
        self.truth = Truth(dict.fromkeys(range(rows), 0))
        self._pool, self._connect, self._clients, self._pause, self._rows = pool, connect, clients, pause, rows
        self._open, self._stopped = threading.Event(), threading.Event()
        self._busy = [threading.Lock() for _ in range(clients)]
        self._threads = [threading.Thread(target=self._write, args=(number, seed)) for number in range(clients)]
        for thread in self._threads:
            thread.start()

    def open(self) -> None:
        self._open.set()

    def pause(self) -> None:
        """Nobody begins to write from here on; some may still wait for a lock."""
        self._open.clear()

    def quiet(self) -> None:
        """Nobody writes from here on."""
        self.pause()
        for lock in self._busy:
            with lock:
                pass

    def stop(self) -> Truth:
        self._stopped.set()
        self._open.set()
        for thread in self._threads:
            thread.join()
        return self.truth

    def _write(self, number: int, seed: int) -> None:
        rng = np.random.default_rng([seed, number])
        own = [row for row in range(self._rows) if row % self._clients == number]
        latest = dict.fromkeys(own, 0)
        session: Session | None = None
        while not self._stopped.wait(self._pause):
            self._open.wait()
            with self._busy[number]:
                if self._stopped.is_set() or not self._open.is_set():
                    continue
                row = int(rng.choice(own)) if rng.random() < 0.7 else own[-1] + self._clients
                if row not in latest:
                    own.append(row)
                    latest[row] = -1
                now = self.truth.versions.get(row)
                after = self._next(rng, now, latest[row])
                try:
                    session = session or self._connect()
                    self._change(session, row, now, after)
                except Exception as error:  # the outcome is not known: a client can only look
                    session, after = self._look(session, row, (now, after), error)
                if after is not None and after > latest[row]:
                    latest[row] = after
                    self.truth.written[row, after] = time.monotonic()
                self.truth.versions[row] = after
                self.truth.changes += 1
        if session is not None:
            session.close()

    @staticmethod
    def _next(rng: np.random.Generator, now: int | None, latest: int) -> int | None:
        """The version after a change: another vector, the same one (another label), or no row."""
        if now is None:
            return latest + 1
        return [latest + 1, now, None][int(rng.choice(3, p=[0.4, 0.25, 0.35]))]

    def _change(self, session: Session, row: int, now: int | None, after: int | None) -> None:
        if after is None:
            session.delete(row)
        elif now is None:
            session.insert(row, after, self._pool.raw(row, after))
        elif after == now:
            session.relabel(row)
        else:
            session.update(row, after, self._pool.raw(row, after))

    def _look(
        self, session: Session | None, row: int, possible: tuple[int | None, int | None], error: Exception
    ) -> tuple[Session | None, int | None]:
        """Connect again and see which of two states it is."""
        begun = time.monotonic()
        while True:
            try:
                if session is not None:
                    session.close()
                session = None
                session = self._connect()
                found = session.version_of(row)
                break
            except Exception as again:
                if time.monotonic() - begun > 60:
                    self.truth.faults.append(f"row {row}: cannot be read by a client any more: {again}"[:400])
                    self._stopped.set()
                    return session, possible[0]
                time.sleep(0.02)
        if found not in possible:
            self.truth.faults.append(f"row {row}: version {found} found after {error!r:.200}, not {possible}")
        return session, found
