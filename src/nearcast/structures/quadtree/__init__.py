"""A quadtree over the boxes of rows, in flat arrays. Several trees can share one set of arrays.

Coordinates become whole numbers: 2^24 columns and lines, of which the outermost take what lies outside. This step is
monotone, so a message meets every row that it overlaps in a common cell. A row lies at the deepest level where it needs
at most `copies` cells (or in a leaf above that level), with one entry in each cell that it overlaps there.

build.py builds trees; change.py changes them; quadtrees.py has the classes around them.
search.py finds rows by pivotal terms (pivots.py), list_scan.py by lists that a caller has selected.
"""
