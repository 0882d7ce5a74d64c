"""A quiz of eight people, made by hand."""

from io import BytesIO

import numpy as np
from PIL import Image

from unface.seeds import stream
from unface.validate.ports import Faces, Picture
from unface.validate.quiz import CATCHES, Quiz, make_quiz

PEOPLE = 8


def picture(name: str, colour: tuple[int, int, int]) -> Picture:
    made = BytesIO()
    Image.new("RGB", (64, 64), colour).save(made, "PNG")
    return Picture(name, made.getvalue())


def quiz() -> Quiz:
    """Eight people of three pictures, each in a colour of its own; reconstructions are a little off."""
    pictures = [picture(f"{at}/{n}", (20 * at, 10 * n, 200)) for at in range(PEOPLE) for n in range(3)]
    vectors = stream(0, "quiz").standard_normal((PEOPLE * 3, 4)).astype(np.float32)
    people = np.repeat(np.arange(PEOPLE), 3)
    faces = Faces(tuple(pictures), people, tuple(map(str, range(PEOPLE))), {"own": vectors})
    drawn = [picture(f"drawn {at}", (20 * at, 99, 200)) for at in range(PEOPLE)]
    strangers = [picture(f"nobody {at}", (250, 250, at)) for at in range(CATCHES)]
    return make_quiz(faces, drawn, strangers, "own", seed=3)
