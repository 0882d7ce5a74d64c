"""The files that people keep: their formats and the numbers in them. Knows nothing of how numbers are computed."""
