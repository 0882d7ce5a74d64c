"""attribution.json on disk, and beside it the pictures that could not be used."""

from pathlib import Path

from unface.auditing.schema.attribution import AttributionResult
from unface.auditing.together import LEFT_OUT_FILE, left_out_listing
from unface.output.taken import require_new_files
from unface.output.write import write_files

ATTRIBUTION_FILE = "attribution.json"
ATTRIBUTION_PAGE = "attribution.html"


def require_unattributed(folder: Path, *, force: bool) -> None:
    """Refuse a folder that holds a finished attribution, before any work is done for it."""
    require_new_files(folder, (ATTRIBUTION_FILE, ATTRIBUTION_PAGE, LEFT_OUT_FILE), force=force)


def save_attribution(result: AttributionResult, folder: Path) -> Path:
    """Write attribution.json, and left-out.csv where there is anything to name; returns the path of the former."""
    write_files(folder, {ATTRIBUTION_FILE: result.file_text()}, {LEFT_OUT_FILE: left_out_listing(result.left_out)})
    return folder / ATTRIBUTION_FILE
