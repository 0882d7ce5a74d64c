"""If this fails, a model in the layout of transformers (CLIP, DINOv2) gives another vector than transformers says.

The models are random and tiny, in the layout of the published ones: what is tested is the reading, not the weights.
"""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.encode.tiny import card, noise
from tests.refusals.table import refused
from unface.encode import tensor_of
from unface.encode.torch_encoder import TorchEncoder

transformers = pytest.importorskip("transformers")

SMALL = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}


def test_clip_gives_the_projected_picture(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.CLIPConfig(
        text_config={**{name: SMALL[name] for name in list(SMALL)[:4]}, "vocab_size": 99},
        vision_config=SMALL,
        projection_dim=8,
    )
    whole = transformers.CLIPModel(config).eval()
    whole.save_pretrained(tmp_path)
    encoder = TorchEncoder(card(architecture="transformers"), tmp_path / "model.safetensors")
    images = noise(3)
    pictures = torch.from_numpy(tensor_of(images, card().input))
    with torch.inference_mode():
        expected = whole.visual_projection(whole.vision_model(pixel_values=pictures).pooler_output).numpy()
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-5)


def test_dinov2_gives_its_class_token(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = transformers.Dinov2Model(transformers.Dinov2Config(**SMALL)).eval()
    model.save_pretrained(tmp_path)
    encoder = TorchEncoder(card(architecture="transformers", pool="cls", dim=16), tmp_path / "model.safetensors")
    images = noise(3)
    with torch.inference_mode():
        expected = model(pixel_values=torch.from_numpy(tensor_of(images, card().input))).last_hidden_state[:, 0].numpy()
    np.testing.assert_allclose(encoder.encode(images), expected, rtol=1e-4, atol=1e-5)


def test_weights_that_do_not_fit_are_refused_and_not_made_up(tmp_path: Path) -> None:
    transformers.Dinov2Model(transformers.Dinov2Config(**SMALL)).save_pretrained(tmp_path)
    transformers.Dinov2Config(**{**SMALL, "num_hidden_layers": 3}).save_pretrained(tmp_path)
    with refused("encoder", "tiny", "weights"):
        TorchEncoder(card(architecture="transformers", pool="cls", dim=16), tmp_path / "model.safetensors")


def test_a_folder_without_a_config_is_one_sentence(tmp_path: Path) -> None:
    with refused("encoder", "tiny", "holds"):
        TorchEncoder(card(architecture="transformers"), tmp_path / "model.safetensors")
