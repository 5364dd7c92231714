"""A trie over token sets, and a quadtree over the rows of each set that many rows have.

Short lists of rows lie in the trie itself. Of a long one the trie holds a single row, the stand-in, with a box around
everything: a search that reaches it goes on in the quadtree of its set, where all rows of the set are.
"""
