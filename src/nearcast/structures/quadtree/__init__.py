"""A quadtree over the boxes of rows, in flat arrays. Several trees can share one set of arrays.

Coordinates become whole numbers: each axis of the tree's bounds has 2^24 columns, and a coordinate outside belongs to
the outermost column. This step is monotone, so two boxes that share a point also share a column and a line. A message
therefore meets every row that it overlaps in a common cell, including borders, points outside and huge boxes.

A row lies at the deepest level where it needs at most `copies` cells (or in a leaf above that level), with one entry
in each cell that it overlaps there. With `copies` = 1 this is the MX-CIF quadtree: the smallest cell around the row.

build.py builds trees; change.py changes them; quadtrees.py has the classes around them.
search.py finds rows by pivotal terms (pivots.py), list_scan.py by lists that a caller has selected.
"""
