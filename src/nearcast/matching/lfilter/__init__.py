"""A trie and a quadtree over one order of rows: which of them filters a message, and how what is left is verified."""
