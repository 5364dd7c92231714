"""Subscriptions of an engine that follow somebody, over `Moving`, with dwell times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from nearcast.arrays.arrow import stream_bytes, stream_table
from nearcast.engine.live.stays import Stays
from nearcast.geo.region import BoxRegion, Region
from nearcast.geo.space import BOX_COLUMNS, Space
from nearcast.matching.subscription_set import part_of
from nearcast.model import Change, Id, in_order
from nearcast.moving.moving import Moving
from nearcast.text.analyser import Analyser


class Followers:
    """Moving subscriptions and the messages that are live. The clock moves by `publish`, `move` and `advance`.

    A message is a result of a subscription with a dwell time once both have matched in every step for that long. The
    changes of a step are the difference between the results before and after it.
    """

    def __init__(self, space: Space, analyser: Analyser) -> None:
        self._space, self._analyser = space, analyser
        self._moving = self._empty()
        self._dwells: dict[Id, int] = {}  # microseconds; subscriptions without a dwell time are left out
        self._stays = Stays()

    def _empty(self) -> Moving:
        bounds = self._space.bounds if self._space.planar else None
        return Moving(space=bounds, analyser=self._analyser)

    def __len__(self) -> int:
        return len(self._moving)

    def __contains__(self, subscription: Id) -> bool:
        return subscription in self._moving

    @property
    def nbytes(self) -> int:
        return self._moving.nbytes

    @property
    def n_messages(self) -> int:
        """The number of live messages."""
        return self._moving.n_messages

    def subscribe(self, number: Id, expression: str, region: Region, dwell: int, now: int) -> None:
        """Add or replace a subscription. Its results begin with the live messages, if it has no dwell time."""
        columns: dict[str, Any] = {"id": [number], "expression": [expression]}
        if isinstance(region, BoxRegion):
            columns |= dict(zip(BOX_COLUMNS, region.boxes(self._space).T.tolist(), strict=True))
        else:
            columns["region"] = [json.dumps(region.to_geojson())]
        self._moving.subscribe(columns)
        self._forget([number])
        if dwell:
            self._dwells[number] = dwell
            for message in self._moving.results(number)["message"].to_pylist():
                self._stays.begin((number, message), now + dwell)

    def state(self, ids: pa.DataType) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays and a header, enough for `restore`. `ids` is the type of the ids."""
        own, header = self._moving.state()
        arrays = {f"moving.{name}": array for name, array in own.items()}
        dwells = {"id": pa.array(list(self._dwells), ids), "dwell": pa.array(self._dwells.values(), pa.int64())}
        stays = self._stays.state(ids, self._moving.message_names.arrow_type)
        return arrays | {"dwells": stream_bytes(pa.table(dwells)), "stays": stream_bytes(stays)}, {"moving": header}

    def restore(self, arrays: dict[str, np.ndarray], header: dict[str, Any]) -> None:
        """Continue from a state."""
        self._moving = Moving.restored(part_of(arrays, "moving"), header["moving"])
        self._dwells = {row["id"]: row["dwell"] for row in stream_table(arrays["dwells"]).to_pylist()}
        for row in stream_table(arrays["stays"]).to_pylist():
            self._stays.begin((row["subscription"], row["message"]), row["from"])

    def _forget(self, numbers: Iterable[Id]) -> None:
        for number in numbers:
            if self._dwells.pop(number, None) is not None:
                self._stays.forget(number)

    def unsubscribe(self, numbers: Sequence[Id]) -> list[Change]:
        """Forget known subscriptions; a change -1 for each of their results. With the last one all messages go."""
        raw = self._moving.unsubscribe(list(numbers))
        left = self._counted(raw, 0)
        self._forget(numbers)
        if len(self._moving) == 0:
            self._moving, self._stays = self._empty(), Stays()
        return in_order(left)

    def publish(self, message: pa.Table, now: int) -> list[Change]:
        """Let one message arrive: columns id, tokens, xmin, ymin, xmax, ymax, expires."""
        return self._step(self._moving.publish(message, now, extra="ignore"), now)

    def move(self, number: Id, place: Sequence[float], now: int) -> list[Change]:
        """Give a subscription a new place, valid for it: a point or a box."""
        return self._step(self._moving.move([number], np.array([place], np.float64), now), now)

    def advance(self, now: int) -> list[Change]:
        """Let time pass."""
        return self._step(self._moving.advance(now), now)

    def results(self, number: Id) -> pa.Table:
        """The messages that count for a subscription, in ascending order: a table with a column `message`."""
        messages = self._moving.results(number)["message"].to_pylist()
        counted = self._stays.without_early(number, messages)
        return pa.table({"message": pa.array(counted, self._moving.message_names.arrow_type)})

    def _step(self, raw: pa.Table, now: int) -> list[Change]:
        changes = self._counted(raw, now)
        changes += [Change(message, number, 1) for number, message in self._stays.take_due(now)]
        return in_order(sorted(changes))

    def _counted(self, raw: pa.Table, now: int) -> list[Change]:
        """The changes that count at once. Others begin a stay, or end one."""
        if raw.num_rows == 0:
            return []
        columns = (raw[name].to_pylist() for name in ("message", "subscription", "change"))
        changes = [Change(*each) for each in zip(*columns, strict=True)]
        if not self._dwells:
            return changes
        counted = []
        for each in changes:
            dwell = self._dwells.get(each.subscription, 0)
            pair = (each.subscription, each.message)
            if dwell and each.change > 0:
                self._stays.begin(pair, now + dwell)
            elif not self._stays.end(pair):
                counted.append(each)
        return counted
