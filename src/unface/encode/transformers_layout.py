"""Vision models in the layout of Hugging Face transformers: a config.json beside the weights."""

from pathlib import Path

import torch

from unface.errors import UnfaceError
from unface.models import Card


def vision_model(folder: Path, card: Card) -> torch.nn.Module:
    """(n, 3, size, size) → (n, dim): CLIP's and SigLIP's projected picture, or a ViT's class token."""
    try:
        from transformers import AutoModel
    except ImportError:
        raise UnfaceError(f"{card.name}: needs transformers; install it, or choose an encoder without") from None
    try:
        # Never with trust_remote_code: nothing that lies beside the weights is run.
        model, loading = AutoModel.from_pretrained(
            folder, local_files_only=True, dtype=torch.float32, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        words = " ".join(str(error).split())[:120]
        raise UnfaceError(f"{card.name}: {folder.name} holds no model that transformers reads ({words})") from None
    absent = [*loading["missing_keys"], *loading["mismatched_keys"]]
    if absent:  # transformers would go on with random numbers in their place
        raise UnfaceError(f"{card.name}: {len(absent)} weights are missing or of another shape, {absent[0]} the first")
    return _Vector(model, card.pool == "cls")


class _Vector(torch.nn.Module):
    """The one tensor of a model's output that is the vector; of a model for text and pictures, the picture's half."""

    def __init__(self, model: torch.nn.Module, class_token: bool) -> None:
        super().__init__()
        self.class_token = class_token
        self.vision = getattr(model, "vision_model", model)
        self.projection = getattr(model, "visual_projection", torch.nn.Identity())

    def forward(self, pictures: torch.Tensor) -> torch.Tensor:
        output = self.vision(pixel_values=pictures)
        vectors: torch.Tensor = output.last_hidden_state[:, 0] if self.class_token else output.pooler_output
        projected: torch.Tensor = self.projection(vectors)
        return projected
