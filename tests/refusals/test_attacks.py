"""If these fail, an attack, a training or a question is begun with settings that cannot be carried out."""

import math
from typing import Any, cast

import numpy as np

from tests.refusals.table import Row, table
from unface.invert.alsuv import read_preset
from unface.invert.decoder import read_preset as read_decoder
from unface.invert.material import require_learners
from unface.protect.certificate import load_function, probe
from unface.protect.facemae_train import Recipe
from unface.protect.frequency import FrontEnd, scheme
from unface.protect.server import open_server, require_recognition
from unface.validate.targets import HttpForm, open_target

NOISE = np.random.default_rng(2)


def alsuv(name: str, text: str, *names: str) -> Row:
    return Row(f"alsuv-{name}", lambda _: read_preset(text), "inversion", "alsuv", names)


def decoder(name: str, text: str, *names: str) -> Row:
    return Row(f"decoder-{name}", lambda _: read_decoder(text), "inversion", "decoder", names)


def recipe(name: str, *names: str, **changed: Any) -> Row:
    """A training that cannot be run."""
    given = {"preset": "tiny"} | changed
    return Row(f"facemae-{name}", lambda _: Recipe(**given), "protection", None, names)


def probed(name: str, function: Any, *names: str, where: str | None = "here:function") -> Row:
    """A function of pictures that has no certificate."""
    act = lambda _: probe(cast(Any, function), 2, name="here:function")  # noqa: E731
    return Row(f"function-{name}", act, "protection", where, names)


def loaded(name: str, text: str, *names: str) -> Row:
    return Row(f"function-{name}", lambda _: load_function(text), "protection", f"--function {text}", names)


def server(name: str, text: str, *names: str, where: str | None = None) -> Row:
    return Row(f"server-{name}", lambda _: open_server(text, cast(Any, None)), "protection", where, names)


def target(name: str, text: str, *names: str, code: str = "validation", where: str | None = None, **form: Any) -> Row:
    """A target that cannot be asked."""
    given = HttpForm(**form) if form else None
    return Row(f"target-{name}", lambda _: open_target(text, form=given), code, where, names)


def divided(pictures: Any) -> Any:
    with np.errstate(divide="ignore", invalid="ignore"):
        return pictures / 0


PICTURE = {"a": "{picture}"}

test_refused = table(
    "attacks",
    alsuv("starts", "starts=0", "starts is 0", "1"),
    alsuv("steps", "steps=0", "steps is 0"),
    alsuv("averaged", "averaged=0", "averaged is 0"),
    alsuv("candidates", "candidates=0", "candidates is 0"),
    alsuv("pool", "pool=3", "3", "4 starts"),
    alsuv("two-presets", "paper,alsuv", "'paper,alsuv'"),
    alsuv("preset", "best", "'best'", "pool, paper, alsuv"),
    alsuv("setting", "speed=1", "'speed=1'", "starts, pool, rate"),
    alsuv("steps-word", "steps=many", "'steps=many'"),
    decoder("width-32", "width=32", "width is 32", "64"),
    decoder("width-100", "width=100", "width is 100"),
    decoder("steps", "steps=0", "steps"),
    decoder("batch", "batch=0", "batch"),
    decoder("generated", "generated=-1"),
    decoder("refine", "refine=-1"),
    decoder("rate-0", "rate=0", "rate"),
    decoder("rate-word", "rate=x", "'rate=x'", "size, width"),
    # (35 - 11) // 2 = 12, and (34 - 11) // 2 = 11
    Row(
        "learners",
        lambda _: require_learners(29, 100, 12, "decoder"),
        "inversion",
        "attack 'decoder'",
        ("29", "leave 10", "12", "35 people"),
    ),
    Row("learners-of-three", lambda _: require_learners(3, 5, 12, "decoder"), "inversion", "attack 'decoder'", "29"),
    recipe("beta", "beta is -0.1", "0", beta=-0.1),
    recipe("beta-infinite", "beta is inf", beta=math.inf),
    recipe("epochs", "epochs is 0", "1", epochs=0),
    recipe("preset", "'huge'", preset="huge"),
    recipe("loss", "'l1'", loss="l1"),
    probed("of-noise", lambda pictures: pictures + NOISE.normal(size=pictures.shape)),
    probed("of-its-batch", lambda pictures: pictures - pictures.mean(axis=0)),
    probed("not-linear", lambda pictures: np.sin(pictures * 7)),
    probed("of-one", lambda pictures: pictures[:1], "(1, ", "4 pictures"),
    probed("of-a-number", lambda pictures: 1.0, "()", "4 pictures"),
    probed("of-infinity", divided),
    probed("raises", lambda pictures: 1 // 0, "ZeroDivisionError"),
    *(
        loaded(f"named-{at}", text, "module:function")
        for at, text in enumerate(("json", "json:", "my json:dumps", "json:1a"))
    ),
    Row("scheme", lambda _: scheme("ppfr-fd", "published"), "protection", None, ("'ppfr-fd'", "dctdp")),
    Row("scheme-variant", lambda _: scheme("dctdp", "x"), "protection", None, ("'x'", "published")),
    Row(
        "scheme-size",
        lambda _: FrontEnd(scheme("dctdp"), 8).planes(np.zeros((1, 9, 9, 3))),
        "protection",
        None,
        ("(1, 9, 9, 3)", "(n, 8, 8, 3)"),
    ),
    server("of-two-names", "dctdp/arcface-mbf", "SCHEME/VARIANT/RECOGNISER", where="'dctdp/arcface-mbf'"),
    server("scheme", "x/published/sface", "'x'"),
    server("variant", "dctdp/x/sface", "'x'"),
    Row("server-that-does-not-recognise", lambda _: require_recognition("s", 0.9699), "protection", "s", "97.0"),
    target("nobody-compared", "https://host/score", "{person}", where="https://host/score"),
    target("password", "https://user:secret@host/{person}", "--header-env", where="https://host/{person}"),
    target(
        "header-not-set",
        "http://h/{person}",
        "UNFACE_NONE",
        headers={"A": "UNFACE_NONE"},
        where="--header-env A=UNFACE_NONE",
    ),
    target("json-without-field", "http://h/{person}", "--field NAME={picture}", body="json"),
    target("of-words", "no target", where="'no target'"),
    target("no-module", "unface_no_module:score", "'unface_no_module'", code="name", where="unface_no_module:score"),
    target("no-function", "json:score", "'score'", code="name", where="json:score"),
    target("no-program", "command:", "command:PROGRAM", where="command"),
    target("command-of-a-quote", "command:'", where="command:'"),
    target("encoder-without-pictures", "encoder:sface", where="encoder:sface"),
    target(
        "command-with-score-path",
        "command:true",
        "--score-path, --body, --field and --header-env",
        score_path="x",
        where="command",
    ),
    target("module-of-two-words", "my module:score", "https://HOST/PATH", where="'my module:…'"),
    target("module-without-function", "json:", where="'json:'"),
    target("module-of-a-number", "a.1b:score", where="'a.1b:…'"),
    target("no-host", "http:///{person}", where="http:///{person}"),
    target("body", "http://h/{person}", "picture, form", body="xml", fields=PICTURE, where="--body xml"),
    target("fields-of-a-picture", "http://h/{person}", "--field", fields=PICTURE),
    target("nobody-in-json", "http://h/x", body="json", fields={**PICTURE, "b": "c"}, where="http://h/x"),
    target("user", "http://u@h/{person}", where="http://h/{person}"),
    target("person-as-password", "http://h:{person}@x/", where="http://x/"),
)
