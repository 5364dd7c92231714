"""A trie over the term sets of rows, in flat arrays. Its nodes know boxes and number ranges of the rows below them.

Terms have ranks by falling frequency (trie.py), and a set is read from its rarest term, the highest rank, on. A
node stands for the set of ranks on the path to it. The node's list has the rows with exactly that set; its children
continue with one lower rank. Rows are numbered in the order of their sets (numbering.py).
"""
