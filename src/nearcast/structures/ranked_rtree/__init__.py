"""R-trees over ranked rows: annotations on the nodes, bounds on scores, and the search."""
