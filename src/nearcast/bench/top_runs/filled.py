"""Windows and buffers that are full at the start, filled once for all methods and kept in a folder.

Filling a buffer is a search of the whole window, 0.1 to 0.3 ms for each subscription: at a million subscriptions it
takes longer than everything that is measured. So buffers are filled once, with the most messages that a policy fetches,
and each policy begins with those that it would have fetched itself. With `--filled DIR` later runs share them too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from nearcast.arrays.jit import kernel
from nearcast.bench.top_runs.workload import TopSizes, TopWorkload
from nearcast.errors import InvalidInput
from nearcast.matching.variant import Variant
from nearcast.storage.bundles import read_bundle
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.buffered.buffers import COMPLETE
from nearcast.topk.buffered.exact import ScoreInputs, exact_score
from nearcast.topk.method import DEFAULT_METHOD, find_method, method_options
from nearcast.topk.refill.best import Plan, put_found
from nearcast.topk.score import THETA
from nearcast.topk.topk import TOPK_FORMAT, TopK

_WORKLOAD = "workload.json"
_DEEPEST = "kmax"
"""The policy that fetches the most, and keeps all of it."""


class FilledWindows:
    """A saved TopK with a full window and full buffers for each refill policy."""

    def __init__(self, folder: Path, workload: TopWorkload, sizes: TopSizes, source: Path | None) -> None:
        self.folder, self.workload, self.sizes = folder, workload, sizes
        self._require_own(sizes._asdict() | {"source": None if source is None else source.name})

    def _require_own(self, described: dict[str, Any]) -> None:
        """Raise InvalidInput if the folder has windows of another workload; else write down whose they are."""
        file = self.folder / _WORKLOAD
        self.folder.mkdir(parents=True, exist_ok=True)
        if not file.exists():
            file.write_text(json.dumps(described) + "\n")
        elif (other := json.loads(file.read_text())) != described:
            raise InvalidInput(f"{self.folder} was filled for {other}; this run is {described}, so name another folder")

    def open(self, variant: Variant) -> TopK:
        """A TopK of this method whose window and buffers are full."""
        refill = refill_of(variant)
        if not (self.folder / _DEEPEST).exists():
            self._fill()
        if not (self.folder / refill).exists():
            self._cut(refill).save(self.folder / refill)
        return self._opened(refill, variant.name, variant.options)

    def _fill(self) -> None:
        work, window = self.workload, self.sizes.window
        top = TopK(None, window, DEFAULT_METHOD, work.weights, work.space, refill=_DEEPEST)
        top.publish(work.messages.slice(0, window))
        top.subscribe(work.subscriptions)
        top.save(self.folder / _DEEPEST)

    def _opened(self, refill: str, name: str, options: dict[str, Any]) -> TopK:
        saved, header = read_bundle(self.folder / refill, TOPK_FORMAT, verify=False)
        arrays = {each: array.copy() for each, array in saved.items()}  # a map would be read while a message is timed
        return TopK.restored(arrays, header | {"method": name, "options": options})

    def _cut(self, refill: str) -> TopK:
        """A TopK with the buffers of this policy: the first messages of the deepest ones, where they are enough."""
        top = self._opened(_DEEPEST, DEFAULT_METHOD, {"refill": refill})
        method, arrays, rows = top.method, top.rows.arrays, top.rows.live_rows()
        assert isinstance(method, BufferedTop)
        policy, inputs = method.policy, ScoreInputs(top.window.ring, arrays, top.metric)
        plan = Plan(rows, policy.depths(arrays.ks[rows]), policy.share_of_kth, method.weights)
        room = int(method.buffers.arrays.counts.max(initial=1))
        found = (np.empty(room), np.empty(room, np.int32))
        is_short = np.zeros(len(rows), bool)
        _cut_buffers(plan, inputs, method.buffers.arrays, method.buffers.head, *found, is_short)
        if is_short.any():
            method.refiller.refill(rows[is_short], method.buffers, method.weights)
        return top


@kernel
def _cut_buffers(plan, inputs, buffers, head, scores, arrivals, out_is_short):
    """Keep in each buffer what a refill by the plan would find, if the buffer has all of that."""
    rows = inputs.rows
    for i in range(len(plan.rows)):
        row = plan.rows[i]
        n, depth, k = buffers.counts[row], plan.depths[i], rows.ks[row]
        is_complete = rows.numbers[row, THETA] < 0.0
        for at in range(n):
            arrivals[at] = buffers.arrivals[buffers.starts[row] + at]
            scores[at] = exact_score(inputs, row, arrivals[at])
        if plan.share_of_kth > 0.0 and n >= k:
            floor, depth = plan.share_of_kth * scores[k - 1], n
            while depth > 0 and scores[depth - 1] < floor:
                depth -= 1
            out_is_short[i] = depth == n and not is_complete
            rows.numbers[row, THETA] = floor if floor > 0.0 else COMPLETE
        elif n >= depth:
            rows.numbers[row, THETA] = scores[depth - 1]
        else:
            out_is_short[i] = not is_complete
        put_found(buffers, head, rows, row, scores, arrivals, min(n, depth))


def refill_of(variant: Variant) -> str:
    """The refill policy of a method. Raises InvalidInput if it has none."""
    options = method_options(find_method(variant.name)) | variant.options
    if "refill" not in options:
        raise InvalidInput(f"method '{variant.name}' has no buffers; measure one of those with an index of rows")
    return str(options["refill"])
