"""read_images: one door for folders, archives and Parquet, by content and never by suffix."""

import os
import tarfile
from pathlib import Path

from unface.data.files import PARQUET, ZIP, first_bytes, short_name, unopened
from unface.data.image_archive import images_of_tar, images_of_zip
from unface.data.image_folder import images_of_folder
from unface.data.image_parquet import images_of_parquet
from unface.data.images import ImageSet
from unface.errors import UnfaceError


def read_images(
    source: str | os.PathLike[str],
    *,
    identities: str | os.PathLike[str] | None = None,
    image: str = "image",
    identity: str = "identity",
    id: str = "id",
) -> ImageSet:
    """The pictures of a folder, zip or tar laid out as ``<identity>/<image>``, or of Parquet with a column of bytes.

    So LFW and VGGFace2 as distributed; CelebA by its ``identity_CelebA.txt``, found in or beside the pictures or given
    as ``identities``. Nothing is decoded here, and nothing is written to disk.
    """
    path = Path(source)
    listing = None if identities is None else Path(identities)
    kind = _kind_of(path)
    if kind == "parquet":
        if listing is not None:
            raise UnfaceError(f"{short_name(path)}: Parquet has its identities in a column; leave the list away")
        return images_of_parquet(path, image=image, identity=identity, id=id)
    return {"folder": images_of_folder, "zip": images_of_zip, "tar": images_of_tar}[kind](path, listing)


def _kind_of(path: Path) -> str:
    start = first_bytes(path)
    if start is None:
        return "parquet" if _holds_parquet(path) else "folder"
    if start.startswith(PARQUET):
        return "parquet"
    if start.startswith(ZIP):
        return "zip"
    if start and tarfile.is_tarfile(path):
        return "tar"
    what = "the file is empty" if not start else "neither zip, tar nor Parquet by its first bytes"
    raise UnfaceError(
        f"{short_name(path)}: {what}; give a folder or archive of <identity>/<image>, or Parquet with pictures"
    )


def _holds_parquet(folder: Path) -> bool:
    try:
        return any(entry.suffix.lower() == ".parquet" for entry in folder.iterdir())
    except OSError as error:
        raise unopened(folder, error) from None
