"""The numbers guard: every number that a command writes, recorded, so that moving code cannot change one unseen.

A case is some command lines over committed input files (``cases/*.toml``, ``inputs/``). What they write is flattened to
paths and values (``values/<case>.txt``). A path may be renamed (``renames.toml``) or removed with a reason
(``removed.toml``); any other difference fails. ``make golden`` shows the differences of every case, and
``python -m tests.golden --record CASE`` writes them down.
"""
