"""Changes for quadtrees, one at a time: few ids, few terms, and sides on the borders of cells, so that they collide."""

from __future__ import annotations

from hypothesis import strategies as st

from nearcast.matching.checks.cases import EVERYWHERE, Message, Subscription, point

SIDES = st.sampled_from([-2.0, 0.0, 0.125, 0.25, 0.26, 0.5, 0.75, 1.0, 3.0])
BOXES = st.tuples(SIDES, SIDES, SIDES, SIDES).map(
    lambda b: (min(b[0], b[2]), min(b[1], b[3]), max(b[0], b[2]), max(b[1], b[3]))
)
TERMS = st.sets(st.integers(0, 4), min_size=1, max_size=3).map(sorted)
# An id, and what it subscribes to from now on; None removes it.
STEPS = st.lists(st.tuples(st.integers(0, 11), st.none() | st.tuples(TERMS, BOXES)), min_size=1, max_size=25)
CHANGES = STEPS.map(lambda steps: [[i] if own is None else [Subscription(i, *own)] for i, own in steps])
"""The same as changes_in_steps.py takes them."""
MESSAGES = [
    Message(terms, box)
    for terms in ([0, 1], [2, 3, 4], [0, 1, 2, 3, 4])
    for box in (point(0.25, 0.5), point(0.5, 0.5), point(-1.0, 2.0), (0.25, 0.25, 0.5, 0.5), EVERYWHERE)
]
