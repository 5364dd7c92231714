"""A quadtree whose rows lie in the cells that a cost model picks, with lists by rarest term in every cell.

A row costs one for each cell that it lies in, and one for each time that it is verified. Over `horizon` messages it is
verified horizon x p(term) x p(cells) times: as often as a message has its term and is in one of its cells. So a row
with a frequent term lies in many small cells that follow its box closely, one with a rare term in one large cell.
"""
