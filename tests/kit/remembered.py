"""What published networks gave for a picture, kept from one run of the tests to the next.

Only the work of ONNX Runtime is skipped. Its model is the graph as unface rewrote it, and its input the picture as
unface prepared it: whoever changes either asks for numbers that are not kept yet, so nothing of ours is left out.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import get_ident
from typing import Any

import pytest

# NumPy is imported by those who ask: tests/conftest.py, which imports this file, sets what BLAS reads when it starts.


@pytest.fixture
def remembered_networks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """Where they are kept: in pytest's cache, for all workers."""
    import numpy as np
    import onnxruntime

    cache = request.config.cache
    assert cache is not None
    kept = cache.mkdir("networks")

    class Remembering(onnxruntime.InferenceSession):  # type: ignore[misc]  # it has no types
        """Asks the network once for each input."""

        def __init__(self, model: bytes | str, *given: Any, **more: Any) -> None:
            super().__init__(model, *given, **more)
            content = model if isinstance(model, bytes) else Path(model).read_bytes()
            self._model = sha256(content + onnxruntime.__version__.encode()).hexdigest()

        def run(self, output_names: Sequence[str] | None, input_feed: dict[str, Any], *given: Any) -> list[Any]:
            file = kept / f"{_key(self._model, output_names, input_feed)}.npz"
            if file.is_file():
                with np.load(file) as arrays:
                    return [arrays[name] for name in arrays.files]
            found: list[Any] = super().run(output_names, input_feed, *given)
            part = file.with_suffix(f".{os.getpid()}-{get_ident()}")  # threads may ask the same at once
            with part.open("wb") as written:
                np.savez(written, *found)
            part.replace(file)
            return found

    monkeypatch.setattr(onnxruntime, "InferenceSession", Remembering)
    return kept


def _key(model: str, outputs: Sequence[str] | None, inputs: dict[str, Any]) -> str:
    import numpy as np

    found = sha256(f"{model} {outputs}".encode())
    for name, value in inputs.items():
        array = np.ascontiguousarray(value)
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(array.tobytes())
    return found.hexdigest()
