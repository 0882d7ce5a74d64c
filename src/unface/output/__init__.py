"""Writing safely: whole files by rename, one run per output, resumable runs, and refusals before any work is done."""
