"""Latent search: several latents in W+ walk uphill in the attacked cosine, and their late positions are averaged.

After ALSUV (Jung et al. 2024), as paper 001 uses it (App. C.5); ``pool`` starts from the best of many random faces.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace

import torch
from torch import Tensor
from torch.nn import functional

from unface.errors import UnfaceError
from unface.invert.ports import Invert, Ledger, Need, Reconstructions, Targets, Threat
from unface.invert.view import View, as_pictures, frame_size, in_parts, require_size
from unface.prior import Prior
from unface.seeds import stream

_PICTURES = 100  # on a GPU at once; 25 targets of four starts
_ON_CPU = 4
_EACH = 6e8  # bytes of a GPU for each picture of a step


@dataclass(frozen=True)
class Preset:
    """How the search goes. ``pool`` 0 starts from random latents, other numbers from the best of so many."""

    starts: int = 4
    pool: int = 2000
    rate: float = 0.05
    decay: float = 0.0
    steps: int = 100
    drop_at: int = 50
    """From this step on the rate is a tenth."""
    averaged: int = 70
    """So many last positions make the result."""
    flips: int = 0
    """1: the vector is the mean of the picture's and its mirror image's."""
    candidates: int = 1
    """Of so many best by cosine, the one nearest to their mean in a second encoder; 1 takes the best."""

    def __post_init__(self) -> None:
        least = {"starts": 1, "steps": 1, "averaged": 1, "candidates": 1}
        for name, value in least.items():
            if getattr(self, name) < value:
                raise UnfaceError(f"alsuv: {name} is {getattr(self, name)}; expected {value} or more")
        if self.pool and self.pool < self.starts:
            raise UnfaceError(f"alsuv: a pool of {self.pool} for {self.starts} starts; draw more, or 0 for none")


PRESETS: Mapping[str, Preset] = {
    "pool": Preset(),
    "paper": Preset(starts=10, pool=0, rate=0.01, decay=1e-4, flips=1, candidates=10),
    "alsuv": Preset(starts=100, pool=0, rate=0.1, decay=5e-4, flips=1, candidates=10),
}


class Alsuv:
    """``alsuv`` is the preset ``pool``; ``alsuv:paper,steps=50`` another one with a change."""

    needs = frozenset({Need.GRADIENTS, Need.PRIOR})

    def __init__(self, preset: str = "pool", *, precision: str | None = None, compiled: bool = False) -> None:
        self.name = "alsuv" if preset == "pool" else f"alsuv:{preset}"
        self.preset = read_preset(preset)
        self.precision, self.compiled = precision, compiled

    @property
    def settings(self) -> Mapping[str, float | str]:
        """The preset, and the precision where one was chosen."""
        return {**asdict(self.preset), **({"precision": self.precision} if self.precision else {})}

    @property
    def batch(self) -> int:
        """Targets."""
        return max(_PICTURES // self.preset.starts, 1)

    def refuse_prior(self, prior: object) -> None:
        """Unless it has W+."""
        style_prior(prior, self.name)

    def prepare(self, threat: Threat, ledger: Ledger) -> Invert:
        """Draw the pool, and set up the search."""
        prior, view = style_prior(threat.prior, self.name), threat.view
        assert view is not None, "require checks"
        require_size(prior, view)
        preset = self.preset
        pool = threat.pool(preset.pool, ledger) if preset.pool else None
        search = Search(prior, view, preset, self.precision, self.compiled)

        def invert(targets: Targets, ledger: Ledger) -> Reconstructions:
            wanted = torch.from_numpy(targets.vectors).to(prior.device)
            if pool is not None:
                places, _ = pool.best(view, wanted, preset.starts)
                starts = pool.latents[places]
            else:
                seeds = [int(stream(threat.seed, "alsuv", int(number)).integers(1 << 31)) for number in targets.numbers]
                starts = torch.stack([prior.sample(preset.starts, seed) for seed in seeds])
            found, cosines = search(starts, wanted, ledger)
            chosen = self._chosen(prior, threat, found, cosines, ledger)
            rows = torch.arange(len(wanted), device=chosen.device)
            size = frame_size(prior)
            with torch.inference_mode():
                pictures = in_parts(len(wanted), lambda part: prior.decode(found[rows, chosen][part], size))
            ledger.count("prior", forward=len(wanted))
            return Reconstructions(cosines[rows, chosen].cpu().numpy(), as_pictures(pictures))

        return invert

    def _chosen(self, prior: Prior, threat: Threat, found: Tensor, cosines: Tensor, ledger: Ledger) -> Tensor:
        """(n,) which start counts for each target."""
        count = min(self.preset.candidates, found.shape[1])
        if count == 1 or threat.second is None:
            return cosines.argmax(dim=1)
        best, second, size = cosines.topk(count, dim=1).indices, threat.second, frame_size(prior)
        flat = found.gather(1, best[:, :, None, None].expand(-1, -1, *found.shape[2:])).flatten(0, 1)
        with torch.inference_mode():
            seen = in_parts(len(flat), lambda part: second(prior.decode(flat[part], size)))
        ledger.count("prior", forward=len(flat))
        ledger.count("encoder", forward=len(flat))
        seen = seen.reshape(len(found), count, -1)
        nearest = (seen @ functional.normalize(seen.mean(dim=1), dim=1)[:, :, None])[:, :, 0].argmax(dim=1)
        return best.gather(1, nearest[:, None])[:, 0]


class Search:
    """The walk itself, for any number of targets; on a GPU in bfloat16, with what it found measured in float32.

    ``compiled`` halves the time of a step, and takes a minute or more before the first.
    """

    def __init__(
        self, prior: Prior, view: View, preset: Preset, precision: str | None = None, compiled: bool = False
    ) -> None:
        self.prior, self.view, self.preset, self.size = prior, view, preset, frame_size(prior)
        on_gpu = prior.device.type == "cuda"
        dtype = {"fp32": torch.float32, "bf16": torch.bfloat16}[precision or ("bf16" if on_gpu else "fp32")]
        tuned = getattr(prior, "tuned", None)
        self._dtype = dtype if tuned is not None else torch.float32
        self._prior: Prior = prior
        self._view = view.cast(dtype) if dtype is not torch.float32 else view
        self._untried: Prior | None = None
        self._one_size = False  # of batches, which a compiled network wants
        if tuned is not None and (on_gpu or dtype is not torch.float32):
            self._prior = tuned(dtype)
            if compiled:
                self._untried = tuned(dtype, compiled=True)
        self._at_once = _ON_CPU
        if on_gpu:
            free, _ = torch.cuda.mem_get_info(prior.device)
            self._at_once = max(min(int(free / _EACH), _PICTURES), _ON_CPU)

    def __call__(self, starts: Tensor, targets: Tensor, ledger: Ledger) -> tuple[Tensor, Tensor]:
        """(n, k, latent_dim) starts and (n, d) targets → (n, k, slots, latent_dim) latents and their (n, k) cosines."""
        n, k = starts.shape[:2]
        flat = starts.flatten(0, 1)[:, None].expand(-1, self.prior.slots, -1).float()
        wanted = targets.repeat_interleave(k, dim=0)
        found = in_parts(n * k, lambda part: self._walk(flat[part], wanted[part], ledger), self._at_once)
        with torch.inference_mode():
            cosines = in_parts(n * k, lambda part: self._cosines(self.prior, self.view, found[part], wanted[part]))
        self._count(ledger, n * k)
        return found.reshape(n, k, *found.shape[1:]), cosines.reshape(n, k)

    def _walk(self, starts: Tensor, wanted: Tensor, ledger: Ledger) -> Tensor:
        preset, given = self.preset, len(starts)
        self.warm(starts, wanted)
        if self._one_size and given < self._at_once:
            fill = torch.arange(self._at_once, device=starts.device) % given
            starts, wanted = starts[fill], wanted[fill]
        latents = starts.clone().requires_grad_()
        optimiser = torch.optim.Adam([latents], lr=preset.rate, weight_decay=preset.decay)
        total, summed = torch.zeros_like(starts), 0
        for step in range(preset.steps):
            if step == preset.drop_at:
                optimiser.param_groups[0]["lr"] = preset.rate / 10
            uphill = self._cosines(self._prior, self._view, latents.to(self._dtype), wanted).sum()
            (latents.grad,) = torch.autograd.grad(-uphill, latents)
            optimiser.step()
            if step >= preset.steps - preset.averaged:
                total += latents.detach()
                summed += 1
        self._count(ledger, given * preset.steps, given * preset.steps)
        return (total / summed)[:given]

    def warm(self, starts: Tensor, wanted: Tensor) -> None:
        """Use the compiled network if one was asked for and runs here: it needs a compiler on the machine."""
        compiled, self._untried = self._untried, None
        if compiled is not None:
            fill = torch.arange(self._at_once, device=starts.device) % len(starts)
            latents, wanted = starts[fill].clone().requires_grad_(), wanted[fill]
            try:
                uphill = self._cosines(compiled, self._view, latents.to(self._dtype), wanted).sum()
                torch.autograd.grad(uphill, latents)
            except Exception:  # whatever a missing compiler is to dynamo, inductor and triton
                return
            self._prior, self._one_size = compiled, True

    @property
    def network(self) -> tuple[Prior, View, torch.dtype, int]:
        """What a step runs: prior and view as they are used, their precision, and pictures at once."""
        return self._prior, self._view, self._dtype, self._at_once

    def _cosines(self, prior: Prior, view: View, latents: Tensor, wanted: Tensor) -> Tensor:
        pictures = prior.decode(latents, self.size)
        vectors = view.encode(pictures)
        if self.preset.flips:
            vectors = functional.normalize(vectors + view.encode(pictures.flip(3)), dim=1)
        cosines: Tensor = (view.released(vectors) * wanted).sum(dim=1)
        return cosines

    def _count(self, ledger: Ledger, forward: int, backward: int = 0) -> None:
        each = 2 if self.preset.flips else 1
        ledger.count("prior", forward, backward)
        ledger.count("encoder", each * forward, each * backward)


def read_preset(text: str) -> Preset:
    """A preset by name, with changes: ``paper``, ``steps=25``, ``pool,starts=8``."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    named = [word for word in words if "=" not in word]
    if len(named) > 1 or (named and named[0] not in PRESETS):
        raise UnfaceError(f"alsuv: no preset {','.join(named)!r}; choose from {', '.join(PRESETS)}")
    changes: dict[str, float] = {}
    kinds = {field.name: field.type for field in fields(Preset)}
    for word in words:
        name, equals, value = word.partition("=")
        if equals:
            try:
                changes[name] = float(value) if kinds[name] is float else int(value)
            except (KeyError, ValueError):
                known = ", ".join(kinds)
                raise UnfaceError(f"alsuv: {word!r} is not a setting and a number; settings are {known}") from None
    return replace(PRESETS[named[0] if named else "pool"], **changes)  # type: ignore[arg-type]


def style_prior(prior: object, attack: str) -> Prior:
    """Refuse a prior without W+."""
    if not hasattr(prior, "slots"):
        name = getattr(prior, "name", "none")
        raise UnfaceError(f"attack {attack!r} searches W+ of a StyleGAN prior; {name} has none, use diffmi with it")
    return prior  # type: ignore[return-value]
