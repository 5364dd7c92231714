"""An R-tree over rows in flat arrays: packed by sort-tile-recursive, then changed row by row.

A method annotates the nodes with tables of its own (term sets, lists). It keeps them current by one rule: the tree is
whole after each step (a row inserted or removed, a node split, entries moved between siblings), and the method updates
its tables before the next step. The height changes rarely, once in twenty-five-fold growth; then all nodes are
annotated again.
"""
