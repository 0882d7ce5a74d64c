"""If these fail, a password is printed on a terminal, or saved in a log, a receipt or a manifest."""

import pickle

import pytest

from tests.stores.contract import projection
from unface.errors import UnfaceError, reason, redact, secrets_of, without_secrets
from unface.scale import Receipt


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("ray://u:private@head:10001", "ray://head:10001"),
        ("ray://u:pri@vate@head:10001", "ray://head:10001"),
        ("ray://u:pri#vate@head:10001", "ray://head:10001"),
        ("ray://u:pri/vate@head:10001", "ray://head:10001"),
        ("ray://u:pri?vate@head:10001", "ray://head:10001"),
        ("ray://head:private", "ray://head:…"),
        ("head:123456789", "head:…"),
        ("u:private@head:6379", "head:6379"),
        ("s3://bucket/a@b/c?secret=private#private", "s3://bucket/a@b/c"),
        ("http://[::1]:80/x", "http://[::1]:80/x"),
        ("", ""),
    ],
)
def test_an_address_is_shown_without_any_part_of_a_password(address: str, shown: str) -> None:
    assert without_secrets(address) == shown
    quoted = redact(f"cannot reach {address}", *secrets_of(address))
    assert "pri" not in quoted
    assert "vate" not in quoted


def test_an_error_hides_what_comes_before_the_host_of_any_url_in_it_and_survives_a_process() -> None:
    error = UnfaceError("store x: GET https://me:pri@vate@host/a and postgresql://u:private@host failed")
    assert str(error) == "store x: GET https://…@host/a and postgresql://…@host failed"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_receipt_hides_it_too() -> None:
    outcome = {"rows": 3, "degenerate": 0, "named_space": False, "raw_purged": True, "verified": None}
    notes = ["a replica at milvus://me:private@other"]
    receipt = Receipt.of(projection(), "milvus://me:private@host/faces", notes=notes, **outcome)
    assert b"private" not in receipt.content()
    assert "private" not in receipt.sentence()


def test_a_long_reason_ends_after_a_word() -> None:
    assert reason(ValueError("connection\n " * 20)) == "connection " * 14 + "…", "160 letters end within the fifteenth"
    assert reason(ValueError("x" * 160)) == "x" * 160
    assert reason(ValueError("x" * 161)) == "x" * 160 + " …"
