"""An R-tree for kind `rank`: its nodes are annotated with terms and with upper bounds on the scores below them."""
