"""One Chromium for all files of this folder."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.chromium import started

if TYPE_CHECKING:
    from playwright.sync_api import Browser


# Not for the session: Playwright keeps an event loop running in this thread, which tests elsewhere do not expect.
@pytest.fixture(scope="package")
def browser() -> Iterator["Browser"]:
    yield from started()
