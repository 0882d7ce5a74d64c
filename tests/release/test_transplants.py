"""If this fails, a transplanted trait carries something else than the trait, and the power studies plant nothing."""

import numpy as np
import pytest
from studies.release_pictures import Reader
from studies.transplants import ANCHORS, altered, transplant

from tests.real import nobody_pictures, weights_here
from unface.data import decode, read_images
from unface.faces import TRAITS, trait_region


@pytest.mark.usefixtures("remembered_networks")
def test_a_transplant_is_the_donor_in_its_trait_and_the_host_elsewhere() -> None:
    for name in ("yunet", "landmarks-106", "arcface-mbf"):
        weights_here(name)
    reader, images = Reader(), read_images(nobody_pictures()).images
    found = np.zeros((len(ANCHORS), len(TRAITS), 2))
    pairs = [(0, 12), (24, 36), (48, 60), (72, 84)]
    for host_row, donor_row in pairs:
        host, donor = (decode(images[row].read()) for row in (host_row, donor_row))
        (_, to), (_, of) = reader.seen(host), reader.seen(donor)  # type: ignore[misc]
        sides = [reader.vectors(one) for one in (donor, host)]
        for number, trait in enumerate(ANCHORS):
            made = transplant(trait, host, to, donor, of)
            outside = ~trait_region(to, trait).mask(host.shape)
            np.testing.assert_array_equal(made[outside], host[outside])
            vectors = reader.vectors(made)
            assert vectors is not None
            found[number] += np.stack([(vectors * np.asarray(side)).sum(axis=1) for side in sides], axis=1) / len(pairs)
    for number, trait in enumerate(ANCHORS):
        donor_wins = found[number, :, 0] > found[number, :, 1]
        assert donor_wins.tolist() == [one == trait for one in TRAITS], (trait, found[number])


def test_altered_copies_are_what_they_are_called() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (40, 50, 3), dtype=np.uint8)
    np.testing.assert_array_equal(altered("copy", picture), picture)
    np.testing.assert_array_equal(altered("mirror", picture)[:, 0], picture[:, -1])
    np.testing.assert_array_equal(altered("crop", picture), picture[4:36, 5:45])
    assert 0 < np.abs(altered("jpeg", picture).astype(int) - picture).mean() < 80
    with pytest.raises(ValueError, match="blur"):
        altered("blur", picture)
