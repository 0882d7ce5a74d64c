"""What a face system gives away that only answers with a score: targets, a ledger of questions, attacks, judges."""

from unface.validate.ports import (
    Attack,
    Faces,
    Knowledge,
    Lost,
    NotSent,
    Oracle,
    Picture,
    Recovered,
    Refused,
    Setting,
    Target,
    TemplateJudge,
)

__all__ = [
    "Attack",
    "Faces",
    "Knowledge",
    "Lost",
    "NotSent",
    "Oracle",
    "Picture",
    "Recovered",
    "Refused",
    "Setting",
    "Target",
    "TemplateJudge",
]
