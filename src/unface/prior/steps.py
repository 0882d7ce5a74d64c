"""Training in steps that a clock or a signal can stop and a file takes up again: to the bit on a CPU."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from unface.errors import UnfaceError
from unface.output.write import write_file

BLOCK = 20
"""Steps; the loss curve has one point for each block."""
STATE = "state.safetensors"


class Steps(ABC):
    """A network, Adam's moments and how far they are. What a step draws must depend on the seed and its number alone.

    ``average`` is a running mean of the weights, where there is one; ``identity`` is of all that decides the weights.
    """

    def __init__(
        self, module: nn.Module, adam: torch.optim.Optimizer, identity: str, average: Sequence[Tensor] = ()
    ) -> None:
        self.step, self.seconds = 0, 0.0
        self.losses: list[float] = []
        self._unsaid: list[Tensor] = []  # of the block that is not full yet
        self.average = list(average)
        self._module, self._adam, self._identity = module, adam, identity

    @abstractmethod
    def one(self) -> Tensor:
        """Take a step, count it in ``step``, and give its loss."""

    def run(self, steps: int, seconds: float = float("inf"), stop: Callable[[], bool] = lambda: False) -> bool:
        """Up to that many steps in all, or until the time is up or ``stop`` says so; whether all are done.

        The clock is looked at after each step. A block that was cut is finished by the next run: one curve for both.
        """
        began = time.monotonic()
        before = self.seconds
        while self.step < steps and time.monotonic() - began < seconds and not stop():
            self._unsaid.append(self.one())
            self.seconds = before + time.monotonic() - began
            if self.step % BLOCK and self.step < steps:
                continue
            loss = float(torch.stack([one.to(self._unsaid[-1].device) for one in self._unsaid]).mean())
            self._unsaid.clear()
            self.losses.append(loss)
            if not np.isfinite(loss):
                raise UnfaceError(f"the loss is {loss} at step {self.step}; lower the learning rate")
        return self.step >= steps

    def save_state(self, folder: Path) -> None:
        """What is needed to go on."""
        moments = self._adam.state_dict()["state"]
        tensors: dict[str, Tensor] = {}
        for place, (name, weight) in enumerate(self._module.named_parameters()):
            tensors[f"weight.{name}"] = weight
            if self.average:
                tensors[f"average.{name}"] = self.average[place]
            tensors |= {f"adam.{key}.{name}": value for key, value in moments.get(place, {}).items()}
        plain = {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
        progress = {
            "step": self.step,
            "seconds": self.seconds,
            "losses": self.losses,
            "unsaid": [float(loss) for loss in self._unsaid],
            "identity": self._identity,
        }
        write_file(folder / STATE, save(plain, {"progress": json.dumps(progress)}))

    def resume(self, folder: Path) -> None:
        """Continue the saved run of the same recipe on the same pictures; nothing where there is none."""
        path = folder / STATE
        if not path.exists():
            return
        try:
            with safe_open(path, framework="pt") as file:
                progress = json.loads(file.metadata()["progress"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 it is no mapping
            if progress["identity"] != self._identity:
                raise UnfaceError(
                    f"{folder.name}: was trained by another recipe or on other pictures; choose another OUT"
                )
            self._continue(progress, tensors)
        except (OSError, SafetensorError, KeyError, TypeError, ValueError, RuntimeError, OverflowError) as error:
            # RuntimeError: shapes that do not fit, or JSON that is nested too deeply.
            raise UnfaceError(f"{folder.name}/{STATE}: cannot be read ({type(error).__name__}); remove it") from None

    def _continue(self, progress: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> None:
        step, seconds = progress["step"], float(progress["seconds"])
        losses, unsaid = ([float(loss) for loss in progress.get(name, [])] for name in ("losses", "unsaid"))
        if not isinstance(step, int) or step < 0 or not np.isfinite([seconds, *losses, *unsaid]).all():
            raise ValueError
        state: dict[int, dict[str, Tensor]] = {}
        with torch.no_grad():
            for place, (name, weight) in enumerate(self._module.named_parameters()):
                weight.copy_(_like(tensors[f"weight.{name}"], weight))
                if self.average:
                    self.average[place].copy_(_like(tensors[f"average.{name}"], weight))
                if step:
                    # Fused Adam wants moments laid out as the weights are; the file holds them contiguous.
                    moments = {
                        key: torch.empty_like(weight).copy_(_like(tensors[f"adam.{key}.{name}"], weight))
                        for key in ("exp_avg", "exp_avg_sq")
                    }
                    state[place] = {"step": tensors[f"adam.step.{name}"].reshape(()), **moments}
        if step:
            self._adam.load_state_dict({"state": state, "param_groups": self._adam.state_dict()["param_groups"]})
        self.step, self.seconds, self.losses = step, seconds, losses
        self._unsaid = [torch.tensor(loss) for loss in unsaid]


def _like(found: Tensor, wanted: Tensor) -> Tensor:
    """Copying would stretch a tensor of another shape."""
    if found.shape != wanted.shape:
        raise ValueError
    return found
