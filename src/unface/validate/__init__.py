"""What a face system that only answers with a score reveals: targets, a ledger of questions, attacks, judges."""

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
