"""What every page and terminal table is made with: cells in words, charts as SVG, templates that escape."""
