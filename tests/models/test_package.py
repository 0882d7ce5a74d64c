"""If this fails, weights come out of packages unverified, or something of a bad package stays in the cache."""

import hashlib
import io
import stat
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.models.conftest import Use, left_behind
from tests.models.served import CONTENT, MEMBER, Index, serving, source_archive, tiny_card, wheel
from tests.refusals.table import refused
from unface.models import Part, weights

WHEEL = "tiny_net-1.0-py3-none-any.whl"


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("pages", ["json", "html"])
def test_a_member_of_a_wheel_arrives_unchanged(ranges: bool, pages: str, use: Use, cache: Path) -> None:
    with serving(Index({WHEEL: wheel()}, ranges=ranges, pages=pages)) as index:
        use(index)
        path = weights(tiny_card())
    assert path == cache / "models" / "tiny" / "net.onnx"
    assert path.read_bytes() == CONTENT
    assert left_behind(cache) == ["models/tiny/net.onnx"]


def test_the_second_time_nobody_is_asked(use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        first = weights(tiny_card())
    assert weights(tiny_card(), offline=True) == first


def test_with_ranges_only_the_member_is_fetched(use: Use) -> None:
    noise = hashlib.shake_256(b"noise").digest(40 << 20)
    packed = wheel({"tiny/before.bin": noise[: 20 << 20], MEMBER: CONTENT, "tiny/after.bin": noise[20 << 20 :]})
    with serving(Index({WHEEL: packed})) as index:
        use(index)
        assert weights(tiny_card()).read_bytes() == CONTENT
        # The server cannot know where we stop reading, so what the sockets hold is sent as well.
        assert index.sent < len(packed) / 2
        assert all(asked for path, asked, _ in index.asked if path.startswith("/files/"))


def test_a_source_archive_is_read_where_there_is_no_wheel(use: Use) -> None:
    member = f"tiny-net-1.0/{MEMBER}"
    packed = source_archive({"tiny-net-1.0/setup.py": b"raise SystemExit", member: CONTENT})
    with serving(Index({"tiny-net-1.0.tar.gz": packed, "tiny-net-0.9.tar.gz": b""})) as index:
        index.files["tiny_net-2.0-py3-none-any.whl"] = b""
        use(index)
        assert weights(tiny_card(member=member)).read_bytes() == CONTENT


@pytest.mark.parametrize("tag", ["cp311-cp311-manylinux", "cp312-cp312-win"])
def test_the_python_tag_chooses_among_wheels(tag: str, use: Use) -> None:
    names = ["tiny_net-1.0-cp311-cp311-manylinux_2_28_x86_64.whl", "tiny_net-1.0-cp312-cp312-win_amd64.whl"]
    held: dict[str, bytes | Path] = {name: wheel() if tag in name else b"not this one" for name in names}
    with serving(Index(held)) as index:
        use(index)
        assert weights(tiny_card(tag=tag)).read_bytes() == CONTENT


def test_files_that_belong_together_arrive_together(use: Use, cache: Path) -> None:
    beside = b'{"layers": 2}'
    model = replace(tiny_card(), beside=(Part("net.json", len(beside), hashlib.sha256(beside).hexdigest()),))
    with serving(Index({WHEEL: wheel({MEMBER: CONTENT})})) as index:
        use(index)
        with refused("weights", "tiny", "net.json"):
            weights(model)
        assert left_behind(cache) == []
        index.files[WHEEL] = wheel({MEMBER: CONTENT, "tiny/models/net.json": beside})
        assert weights(model).with_name("net.json").read_bytes() == beside


def linked() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        entry = zipfile.ZipInfo(MEMBER)
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, CONTENT)
    return file.getvalue()


def flipped() -> bytes:
    packed = bytearray(wheel())
    packed[200] ^= 0x10
    return bytes(packed)


BAD_WHEELS = {
    "other content": (wheel({MEMBER: CONTENT[::-1]}), "has sha256"),
    "too short": (wheel({MEMBER: CONTENT[:-1]}), "511,999"),
    "too long": (wheel({MEMBER: CONTENT + b"x"}), "has 512,001 bytes, 512,000 expected"),
    "no such member": (wheel({"tiny/other.onnx": CONTENT}), "the archive holds no tiny/models/net.onnx"),
    "leads out": (wheel({MEMBER: CONTENT, "../../.bashrc": b"x"}), "'../../.bashrc'"),
    "absolute": (wheel({MEMBER: CONTENT, "/etc/cron.d/x": b"x"}), "leads out"),
    "a drive": (wheel({MEMBER: CONTENT, "C:\\x": b"x"}), "leads out"),
    "backslashes": (wheel({MEMBER: CONTENT, "tiny\\..\\..\\x": b"x"}), "leads out"),
    "a link": (linked(), "plain"),
    "damaged": (flipped(), "whole"),
    "no archive": (b"<html>log in first</html>", "whole"),
    "a few bytes": (b"no", "whole"),
    "empty": (b"", "whole"),
}


@pytest.mark.parametrize("ranges", [True, False])
@pytest.mark.parametrize("what", BAD_WHEELS)
def test_a_bad_wheel_is_refused_and_nothing_is_kept(what: str, ranges: bool, use: Use, cache: Path) -> None:
    packed, said = BAD_WHEELS[what]
    with serving(Index({WHEEL: packed}, ranges=ranges and bool(packed))) as index:
        use(index)
        with refused("weights", "tiny", said):
            weights(tiny_card())
    assert left_behind(cache) == []


MEMBER_IN_TAR = f"tiny-net-1.0/{MEMBER}"
BAD_TARS = {
    "other content": (source_archive({MEMBER_IN_TAR: CONTENT[::-1]}), "has sha256"),
    "too short": (source_archive({MEMBER_IN_TAR: CONTENT[1:]}), "511,999"),
    "too long": (source_archive({MEMBER_IN_TAR: CONTENT + b"x"}), "512,000"),
    "leads out, before": (source_archive({"../x": b"x", MEMBER_IN_TAR: CONTENT}), "leads out"),
    "leads out, after": (source_archive({MEMBER_IN_TAR: CONTENT, "a/../../x": b"x"}), "leads out"),
    "no such member": (source_archive({"tiny-net-1.0/x": CONTENT}), "holds no"),
    "cut": (source_archive({MEMBER_IN_TAR: CONTENT})[:-300], "whole"),
    "no archive": (b"hello", "whole"),
}


@pytest.mark.parametrize("what", BAD_TARS)
def test_a_bad_source_archive_is_refused_and_nothing_is_kept(what: str, use: Use, cache: Path) -> None:
    packed, said = BAD_TARS[what]
    with serving(Index({"tiny-net-1.0.tar.gz": packed})) as index:
        use(index)
        with refused("weights", "tiny", said):
            weights(tiny_card(member=MEMBER_IN_TAR))
    assert left_behind(cache) == []


@pytest.mark.parametrize("ranges", [True, False])
def test_a_connection_that_breaks_leaves_nothing(ranges: bool, use: Use, cache: Path) -> None:
    with serving(Index({WHEEL: wheel()}, ranges=ranges, cut=700)) as index:
        use(index)
        with refused("weights", "tiny"):
            weights(tiny_card())
    assert left_behind(cache) == []


def test_a_missing_version_is_named(use: Use) -> None:
    with serving(
        Index({"tiny_net-1.0.1-py3-none-any.whl": wheel(), "tiny_net-11.0-py3-none-any.whl": wheel()})
    ) as index:
        use(index)
        with refused("weights", "tiny", "127.0.0.1", "1.0"):
            weights(tiny_card())


def test_a_missing_package_is_named(use: Use) -> None:
    with serving(Index({"other-1.0-py3-none-any.whl": wheel()})) as index:
        use(index)
        with refused("weights", "tiny", "127.0.0.1", "tiny-net"):
            weights(tiny_card())


def test_without_a_network_the_sentence_says_what_to_do(cache: Path) -> None:
    with refused("weights", "tiny", "127.0.0.1", "net.onnx", "sha256", "--name", "Connection"):
        weights(tiny_card())
    assert left_behind(cache) == []


def test_the_login_in_an_address_is_sent_to_its_host_alone_and_never_told(use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as files, serving(Index({WHEEL: b""}, login="ann:s%cret")) as index:
        index.elsewhere = files.address.replace("127.0.0.1", "localhost")
        use(index, login="ann:s%25cret")
        assert weights(tiny_card()).read_bytes() == CONTENT
        assert [login for *_, login in files.asked if login] == []
        weights(tiny_card()).unlink()
        use(index, login="ann:wrong")
        with refused("weights", "tiny", "HTTP 401") as caught:
            weights(tiny_card())
    assert "wrong" not in str(caught.value)


def test_the_login_does_not_follow_a_redirect(use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as files, serving(Index({WHEEL: b""}, login="ann:secret")) as index:
        index.redirect = files.address
        use(index, login="ann:secret")
        assert weights(tiny_card()).read_bytes() == CONTENT
    assert files.asked
    assert [login for *_, login in files.asked if login] == []


def test_an_index_cannot_point_to_a_file_of_this_machine(use: Use, tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / WHEEL).write_bytes(wheel())
    with serving(Index({WHEEL: b""}, elsewhere=tmp_path.as_uri())) as index:
        use(index)
        with refused("weights", "tiny", "address"):
            weights(tiny_card())


def test_many_at_once_all_get_the_whole_file(use: Use, cache: Path) -> None:
    with serving(Index({WHEEL: wheel()})) as index, ThreadPoolExecutor(6) as pool:
        use(index)
        paths = list(pool.map(lambda _: weights(tiny_card()).read_bytes(), range(12)))
    assert all(content == CONTENT for content in paths)
    assert left_behind(cache) == ["models/tiny/net.onnx"]


def test_a_damaged_file_in_the_cache_is_fetched_again(use: Use) -> None:
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        path = weights(tiny_card())
        path.write_bytes(CONTENT[:-1] + b"!")
        assert weights(tiny_card()).read_bytes() == CONTENT
        path.write_bytes(b"")
        with refused("weights", "tiny", "damaged"):
            weights(tiny_card(), offline=True)


def test_progress_counts_the_bytes_of_the_model(use: Use) -> None:
    class Counter:
        total, done = 0, 0

        def start(self, task: str, total: int) -> None:
            assert task == "tiny"
            self.total += total

        def advance(self, task: str, steps: int = 1) -> None:
            self.done += steps

    counter = Counter()
    with serving(Index({WHEEL: wheel()})) as index:
        use(index)
        weights(tiny_card(), progress=counter)
    assert counter.total == counter.done == len(CONTENT)
