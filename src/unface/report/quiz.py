"""quiz.html: the page on which people say who the reconstructions show. It holds faces, and loads and sends nothing."""

import base64
from io import BytesIO

from PIL import Image

from unface.page.templates import page_file, render_page

_SIDE = 224


def render_quiz(quiz: str, items: list[tuple[bytes, list[bytes]]]) -> str:
    """Of (face, candidates) in their order; ``quiz`` is the hash that answers carry."""
    shown = [{"face": _picture(face), "candidates": [_picture(one) for one in others]} for face, others in items]
    return render_page(
        "unface.report:quiz.html.jinja",
        script=page_file("unface.report:quiz.js"),
        items={"quiz": quiz, "items": shown},
    )


def _picture(content: bytes) -> str:
    """Reduced and without anything that a camera wrote into it."""
    with Image.open(BytesIO(content)) as opened:
        picture = opened.convert("RGB")
    picture.thumbnail((_SIDE, _SIDE))
    made = BytesIO()
    picture.save(made, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(made.getvalue()).decode()}"
