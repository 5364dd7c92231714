"""An R-tree over rows in flat arrays: packed by sort-tile-recursive, then changed row by row.

What a node carries beyond its boxes (token sets, lists) belongs to the method. It follows the tree by one rule: after
each step (a row put in or taken out, a split, entries passed between two siblings) the tree is whole again, and the
method brings its own tables up to date before the next step. A change of height is rare (once in twenty-five-fold
growth), and methods then hang their tables on the tree anew.
"""
