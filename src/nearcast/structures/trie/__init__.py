"""A trie over token sets that knows places: nodes with boxes and ranges of numbers, rows in the order of their sets.

Token sets are read from the rarest token on. A node stands for a set: the tokens on the way to it. Rows with just that
set are its list; its children go on with one token more, which is more frequent than its own. All in flat arrays.
"""
