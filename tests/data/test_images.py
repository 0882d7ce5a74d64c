"""If this fails, pictures are lost, given to the wrong person, or read from outside their archive."""

import tarfile
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.data.pictures import jpeg, people, write_folder, write_tar, write_zip
from tests.refusals.table import refused
from unface.data import BadPicture, ImageSet, read_images
from unface.errors import UnfaceError


def as_folder(root: Path, files: Mapping[str, bytes]) -> Path:
    return write_folder(root / "faces", files)


def as_zip(root: Path, files: Mapping[str, bytes]) -> Path:
    return write_zip(root / "faces.zip", files)


def as_tar(root: Path, files: Mapping[str, bytes]) -> Path:
    return write_tar(root / "faces.tar", files)


def as_tgz(root: Path, files: Mapping[str, bytes]) -> Path:
    return write_tar(root / "faces.tgz", files, "w:gz")


Layout = Callable[[Path, Mapping[str, bytes]], Path]
LAYOUTS = [as_folder, as_zip, as_tar, as_tgz]


def content(images: ImageSet) -> dict[str, tuple[str, bytes]]:
    return {image.id: (image.identity, image.read()) for image in images}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same_pictures_of_the_same_people(tmp_path: Path, layout: Layout) -> None:
    files = people()
    images = read_images(layout(tmp_path, files))
    assert content(images) == {name: (name.split("/")[0], jpg) for name, jpg in files.items()}
    assert images.identities == ("ann0", "ann1", "ann2")
    assert images.notes == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_hash_of_a_set_is_of_its_listing_and_not_of_its_container(tmp_path: Path, layout: Layout) -> None:
    files = people()
    assert read_images(layout(tmp_path, files)).sha256() == read_images(as_folder(tmp_path / "other", files)).sha256()
    (tmp_path / "more").mkdir()
    more = read_images(layout(tmp_path / "more", {**files, "ann9/1.jpg": jpeg()}))
    assert more.sha256() != read_images(tmp_path / "other" / "faces").sha256()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_lfw_and_vggface2_as_distributed(tmp_path: Path, layout: Layout) -> None:
    files = {
        "lfw/Ann_Lee/Ann_Lee_0001.jpg": jpeg(1),
        "train/n000001/0001_01.jpg": jpeg(2),
        "train/n000002/0002_01.jpg": jpeg(),
    }
    owners = {image.id: image.identity for image in read_images(layout(tmp_path, files))}
    assert list(owners.values()) == ["Ann_Lee", "n000001", "n000002"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_celeba_as_distributed_takes_identities_from_its_list(tmp_path: Path, layout: Layout) -> None:
    files = {
        "img_align_celeba/000001.jpg": jpeg(1),
        "img_align_celeba/000002.jpg": jpeg(2),
        "img_align_celeba/000003.jpg": jpeg(3),
        "identity_CelebA.txt": b"000001.jpg 2880\n000002.jpg 2937\n",
    }
    images = read_images(layout(tmp_path, files))
    assert [(image.id[-10:], image.identity) for image in images] == [("000001.jpg", "2880"), ("000002.jpg", "2937")]
    assert images.notes == ("1 picture left out: not in the list of identities",)


def test_celebas_list_beside_its_zip_is_found_and_any_other_can_be_given(tmp_path: Path) -> None:
    files = {"img_align_celeba/000001.jpg": jpeg(1), "img_align_celeba/000002.jpg": jpeg(2)}
    (tmp_path / "identity_CelebA.txt").write_text("000001.jpg 1\n000002.jpg 2\n")
    (tmp_path / "other.txt").write_text("000001.jpg 7\n000002.jpg 8\n")
    path = write_zip(tmp_path / "img_align_celeba.zip", files)
    assert read_images(path).identities == ("1", "2")
    assert read_images(path, identities=tmp_path / "other.txt").identities == ("7", "8")


@pytest.mark.parametrize("struct", [False, True])
def test_pictures_in_parquet_are_read_across_row_groups_in_any_order(tmp_path: Path, struct: bool) -> None:
    pictures = [jpeg(seed) for seed in range(7)]
    column = [{"bytes": one, "path": None} for one in pictures] if struct else pictures
    table = pa.table({"image": column, "identity": ["a", "b", "a", "b", "a", "b", "c"], "id": list("tuvwxyz")})
    pq.write_table(table, tmp_path / "faces.parquet", row_group_size=3)
    images = read_images(tmp_path / "faces.parquet")
    assert [image.read() for image in reversed(images.images)] == pictures[::-1]
    assert [(image.id, image.identity) for image in images][-2:] == [("y", "b"), ("z", "c")]


def test_other_files_are_left_out_and_counted(tmp_path: Path) -> None:
    files = {
        **people(2, 1),
        "readme.txt": b"",
        "ann0/notes.csv": b"",
        ".hidden/x.jpg": jpeg(),
        "__MACOSX/a/._1.jpg": b"x",
    }
    images = read_images(as_zip(tmp_path, files))
    assert len(images) == 2
    assert images.notes == ("2 files left out: no picture by the suffix",)


def test_links_in_a_tar_are_not_followed(tmp_path: Path) -> None:
    path = as_tar(tmp_path, people())
    with tarfile.open(path, "a") as archive:
        link = tarfile.TarInfo("ann0/9999.jpg")
        link.type, link.linkname = tarfile.SYMTYPE, "../../secret.jpg"
        archive.addfile(link)
    assert "ann0/9999.jpg" not in content(read_images(path))


def test_a_loop_of_links_ends_and_counts_every_picture_once(tmp_path: Path) -> None:
    folder = as_folder(tmp_path, people())
    (folder / "ann0" / "again").symlink_to(folder)
    (folder / "self.jpg").symlink_to(folder / "self.jpg")
    (folder / "bob").symlink_to(folder / "ann1")
    assert len(read_images(folder)) == len(people())


def test_nothing_is_extracted_to_disk(tmp_path: Path) -> None:
    path = as_zip(tmp_path, people())
    content(read_images(path))
    assert [entry.name for entry in tmp_path.iterdir()] == ["faces.zip"]


def test_a_picture_that_vanished_is_a_reason_and_not_a_crash(tmp_path: Path) -> None:
    images = read_images(as_folder(tmp_path, people()))
    (tmp_path / "faces" / "ann0" / "0001.jpg").unlink()
    with refused("bad-picture"):
        images.images[0].read()


def test_the_repr_names_nobody(tmp_path: Path) -> None:
    assert repr(read_images(as_zip(tmp_path, people()))) == "ImageSet('faces.zip': 6 pictures, 3 identities)"


def test_an_id_column_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    pq.write_table(pa.table({"image": [jpeg()], "identity": ["a"]}), tmp_path / "faces.parquet")
    assert [image.id for image in read_images(tmp_path / "faces.parquet")] == ["faces/0"]
    with refused("pictures", "faces.parquet", "'key'"):
        read_images(tmp_path / "faces.parquet", id="key")


@pytest.mark.parametrize("method", ["gz", "xz", "bz2"])
def test_a_compressed_tar_damaged_anywhere_is_read_or_one_line(tmp_path: Path, method: str) -> None:
    whole = write_tar(tmp_path / "faces.tar", people(6, 4), f"w:{method}").read_bytes()
    told = list[str]()
    for part in range(1, 12):
        at = len(whole) * part // 12
        for damaged in (whole[:at], whole[:at] + bytes(8) + whole[at + 8 :]):
            (tmp_path / "faces.tar").write_bytes(damaged)
            try:
                for image in read_images(tmp_path / "faces.tar"):
                    with suppress(BadPicture):
                        image.read()
            except UnfaceError as error:
                told.append(str(error))
    assert told, "some of this damage cannot be read around"
    assert all(line.startswith("faces.tar: ") and "\n" not in line for line in told)


def test_a_member_without_a_name_is_no_picture(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "faces.zip", "w") as archive:
        archive.writestr("ann/1.jpg", jpeg())
        archive.writestr("nameless", b"")
        archive.infolist()[1].filename = ""
    assert [image.id for image in read_images(tmp_path / "faces.zip")] == ["ann/1.jpg"]
