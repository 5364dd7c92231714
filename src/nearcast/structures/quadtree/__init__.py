"""A quadtree over rows in flat arrays, whose nodes know one pivotal token of each row below them.

Places are whole numbers: a coordinate belongs to one of 2^24 columns (lines) of the tree's bounds, and what lies
outside to the outermost one. The step from coordinate to column never turns two coordinates around, so boxes that
share a point share a column and a line: a message meets every row that it overlaps in a cell that both have, borders,
points outside and huge boxes included.

A row lies at the deepest level where it needs at most `copies` cells, or in leaves that end above it, once in each cell
that it overlaps there. Where `copies` is 1 that is the MX-CIF quadtree: the smallest cell that holds the row.
"""
