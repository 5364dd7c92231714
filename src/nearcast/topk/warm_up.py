"""Calls every kernel of kind `top` with the argument types of real work, so that it is compiled or loaded."""

from __future__ import annotations

import numpy as np

from nearcast.topk.checks.world import Twins, messages, seconds, subscriptions
from nearcast.topk.method import AUTO, method_names


def warm_top(n_rows: int) -> None:
    """Play a short stream to every method: more messages and subscriptions with more rows."""
    n, n_messages = max(20, n_rows // 15), n_rows // 4
    for name in method_names():
        if name == AUTO:
            continue
        rng = np.random.default_rng(1)
        twins = Twins(name, subscriptions(rng, np.arange(n)), seconds(60), space=None)
        top = twins.one
        top.publish(messages(rng, n_messages, 0, 0))
        top.subscribe(subscriptions(rng, np.arange(n - 3, n + 3)))
        top.publish(messages(rng, n_messages, n_messages, 10**12))
        top.unsubscribe(np.arange(5))
        twins.ids = set()
        twins.reopen()
        twins.one.publish(messages(rng, 10, 10**6, 10**13))
