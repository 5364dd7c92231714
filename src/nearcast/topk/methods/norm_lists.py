"""Lists by term and remaining norm, with buffers whose limit rises when they are full: the default for kind `top`.

Paper      nearcast
Idea       A subscription is filed under each of its terms, by how many terms follow in order of weight. A list is
           ordered by the least message norm that can reach the subscription's buffer, so a search stops early; what it
           scans, it tests by five products on flat arrays. Buffers keep runners-up, raise their limit when full, and
           are refilled by a best-first search.
Layout     Slots of 20 bytes by list and bucket; buffers of 6 bytes an entry; postings of 24 bytes by term in k-d
           order.
Cost       An arrival scans the slots of its terms up to its norm; an expiry looks at the rows whose oldest message it
           is.
Deviates   nothing
"""

from __future__ import annotations

import numpy as np

from nearcast.geo.space import Space
from nearcast.model import Changes
from nearcast.topk.buffered import fused
from nearcast.topk.buffered.buffered_method import BufferedTop
from nearcast.topk.buffered.steps import with_log_room, with_touched_room
from nearcast.topk.dissemination.norm_lists import NormLists
from nearcast.topk.incoming import IncomingMessages
from nearcast.topk.rows import TopRows
from nearcast.topk.score import Metric
from nearcast.topk.window import Window


class NormListsTop(BufferedTop):
    """The default. Steps run in one kernel, which returns when an array must grow or rows must be refilled."""

    name = "norm-lists"
    paper = "nearcast"
    checked_with = ("", "refill=kmax")

    dissemination: NormLists

    def __init__(self, rows: TopRows, window: Window, metric: Metric, space: Space, refill: str = "raising") -> None:
        super().__init__(rows, window, metric, space, refill)
        self._bounds, self._needs = np.zeros(3, np.int64), np.zeros(4, np.int64)

    def make_dissemination(self) -> NormLists:
        return NormLists(self.rows, self.metric, self.embedding)

    def publish(self, messages: IncomingMessages) -> Changes:
        window = self.window
        window.load(messages)
        self.wheel.fit(len(window.ring.ids), self.buffers.arrays)
        self.messages.fit(self.weights)
        longest = int((messages.term_starts[1:] - messages.term_starts[:-1]).max(initial=0))
        self.dissemination.expect(self.weights, longest)
        ends, size = np.zeros(messages.size, np.int64), window.size
        clock = np.array([window.first, window.stop, window.loaded, 0, size.n_messages, size.period_us, 0, 0], np.int64)
        while True:
            reason = fused.run_steps(self._core(), clock, ends, self._needs)
            window.first, window.stop = int(clock[fused.FIRST]), int(clock[fused.ARRIVAL])
            if reason == fused.DONE:
                return self._changes(ends, messages.times)
            if reason == fused.GROW:
                self._grow(int(clock[fused.USED]))
                continue
            if reason == fused.APPEND:
                self.messages.append(window, window.stop - 1, self.weights, int(clock[fused.N_POSTED]))
            if clock[fused.N_TOUCHED] > 0:
                clock[fused.USED] = self._finish(int(clock[fused.N_TOUCHED]), int(clock[fused.USED]))
            ends[len(ends) - (window.loaded - window.stop) - 1] = clock[fused.USED]

    def _grow(self, used: int) -> None:
        """Make the room that the kernel lacks, and some more."""
        needs = self._needs.tolist()
        self.buffers.reserve(needs[fused.ROOM_BUFFERS])
        self._log = with_log_room(self._log, used, needs[fused.ROOM_LOG] + 1024)
        n_touched, n_entries = needs[fused.ROOM_TOUCHED] + 64, needs[fused.ROOM_ENTRIES] + 1024
        self._touched = with_touched_room(self._touched, len(self.rows.arrays.ks), n_touched, n_entries)

    def _core(self) -> fused.Core:
        return fused.Core(
            inputs=self._inputs(),
            buffers=self.buffers.arrays,
            buffer_head=self.buffers.head,
            wheel=self.wheel.arrays,
            touched=self._touched,
            log=self._log,
            lists=self.dissemination.index(self.weights),
            stretches=self.messages.stretches,
            postings=self.messages.postings,
            postings_head=self.messages.head,
            bounds=self._bounds,
            counts=self._counts,
        )
