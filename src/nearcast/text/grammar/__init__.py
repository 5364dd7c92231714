"""How expressions are written: their tree, the pieces of their text, and the near misses that are refused."""
