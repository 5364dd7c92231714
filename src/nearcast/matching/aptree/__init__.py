"""The AP-tree: rows divided by words or by place, whichever is cheaper, node by node.

nodes.py is the layout. A build is ranks.py (the order of terms), cuts.py and cells.py (the two ways to divide a node),
division.py (the choice) and build.py; a change is route.py (where a row lies) and change.py; search.py matches.
"""
