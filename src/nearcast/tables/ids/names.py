"""The names of ids: strings and UUIDs outside, int64 inside. Whole numbers are their own names and take no memory.

Ids that are no numbers get the numbers 0, 1, … . A number belongs to one id while this table exists. `only` makes the
table of the ids that are still in use, in which the other numbers are free again. Thus readers of an older version keep
an older table, and need no lock. Any number of threads may read, one may add.

As long as numbers have the order of their ids, results are sorted as they are found: a first table is numbered so, and
ids that are added in ascending order keep it so. Else results are sorted again by ranks.
"""

from __future__ import annotations

import uuid
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from nearcast.arrays.arrow import MAX_OFFSET, large_string_array
from nearcast.arrays.checked import checked_column, require_starts
from nearcast.arrays.growable import grown
from nearcast.arrays.ragged import distinct
from nearcast.errors import InvalidInput
from nearcast.tables.ids.from_python import id_column, one_id
from nearcast.tables.ids.gather import gather, lengths_of, order_within
from nearcast.tables.ids.id_columns import IdColumn, as_outside
from nearcast.tables.ids.id_types import INT64, UUID_BYTES, Id, IdType, header_of, of_header, type_of_value
from nearcast.text.string_table import StringTable, require_array

UNKNOWN = -1
_SLACK = 1024
_FEW = 16  # times as many ids in the table as in the results: then ranks of the results alone are found


class _Strings(StringTable):
    """Strings of bytes, by entry."""

    def add(self, ids: IdColumn) -> np.ndarray:
        raw, offsets = ids.buffers()
        if len(self) == 0:
            self._reserve(len(offsets) - 1, int(offsets[-1] - offsets[0]))
        return self._add(raw, offsets)

    def find(self, ids: IdColumn) -> np.ndarray:
        return self._lookup(*ids.buffers())

    def bytes_of(self, entry: int) -> bytes:
        return self._bytes[self._starts[entry] : self._starts[entry + 1]].tobytes()

    def gathered(self, entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(bytes, starts int64[n+1]) of these strings."""
        starts = np.empty(len(entries) + 1, np.int64)
        lengths_of(self._starts, entries, starts)
        out = np.empty(starts[-1], np.uint8)
        gather(self._bytes, self._starts, entries, starts, out)
        return out, starts

    def reset(self, raw: np.ndarray, starts: np.ndarray) -> None:
        """Take these strings into an empty table."""
        self._reserve(len(starts) - 1, int(starts[-1]))
        self._add(raw, starts)

    def arrays(self) -> dict[str, np.ndarray]:
        return self._string_arrays("id")

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._take_arrays(arrays, "id", "a table of ids")

    def all(self) -> tuple[np.ndarray, np.ndarray]:
        """(bytes, starts) of all strings."""
        return self._bytes[: self._starts[self._n]], self._starts[: self._n + 1]


class Names:
    """The ids of one table, index or window: all of one type, which the first ids determine."""

    def __init__(self, what: str = "index") -> None:
        self.what = what
        self.type: IdType | None = None
        self._strings = _Strings()
        self._entry_of: np.ndarray | None = None  # int32, by number; None while a number is its entry
        self._number_of: np.ndarray | None = None  # int32, by entry
        self._free = np.empty(0, np.int32)
        self._high = 0  # numbers ever given
        self._n_numbered = 0  # entries in `_number_of`
        self._is_ordered = True
        self._ranks: np.ndarray | None = None  # of the entries that there were; int32

    def __len__(self) -> int:
        """The number of names kept: 0 for whole numbers."""
        return len(self._strings)

    @property
    def is_plain(self) -> bool:
        """Whether ids are whole numbers, or none is known yet."""
        return self.type is None or self.type.is_number

    @property
    def is_ordered(self) -> bool:
        """Whether numbers ascend as their ids do."""
        return self.is_plain or self._is_ordered

    @property
    def arrow_type(self) -> pa.DataType:
        """The type of ids in tables of results."""
        return (self.type or INT64).arrow

    @property
    def words(self) -> str:
        """What people call such ids."""
        return "none yet" if self.type is None else self.type.words

    @property
    def nbytes(self) -> int:
        if self.is_plain:
            return 0
        own = (self._entry_of, self._number_of, self._free, self._ranks)
        return self._strings.nbytes + sum(int(each.nbytes) for each in own if each is not None)

    # -- from outside to inside

    def require(self, kind: IdType) -> None:
        """Raise InvalidInput if ids of this type cannot be added."""
        if self.type is not None and self.type.name != kind.name:
            reason = f"the ids are {kind.words}, those of this {self.what} are {self.type.words}; give ids of that type"
            raise InvalidInput(reason, column="id")

    def adopt(self, kind: IdType) -> None:
        """Require ids of this type from now on."""
        self.require(kind)
        self.type = self.type or kind

    def add(self, ids: IdColumn) -> np.ndarray:
        """int64[n]: the number of each id. New ids get new numbers, the first table in the order of the ids."""
        if len(ids.numbers) == 0:
            return ids.numbers
        self.adopt(ids.type)
        if self.is_plain:
            return ids.numbers
        if len(self._strings) == 0 and len(ids.numbers) > 1:
            return self._add_first(ids)
        return self._numbered(self._strings.add(ids))

    def _add_first(self, ids: IdColumn) -> np.ndarray:
        order = np.argsort(ids.numbers, kind="stable")
        numbers = np.empty(len(order), np.int64)
        numbers[order] = self._strings.add(ids.take(order))
        self._high = len(self._strings)
        return numbers

    def _numbered(self, entries: np.ndarray) -> np.ndarray:
        """The numbers of entries, of which the last ones may be new."""
        n_old, n = self._high if self._number_of is None else self._n_numbered, len(self._strings)
        if n > n_old:
            self._is_ordered = self._is_ordered and self._number_of is None and self._ascends(n_old, n)
            self._ranks = None
            self._give_numbers(n_old, n)
        return entries.astype(np.int64) if self._number_of is None else self._number_of[entries].astype(np.int64)

    def _give_numbers(self, first: int, stop: int) -> None:
        """Number the entries first .. stop-1."""
        if self._number_of is None or self._entry_of is None:
            self._high = stop
            return
        again = self._free[: stop - first]
        new = np.arange(self._high, self._high + stop - first - len(again), dtype=np.int32)
        numbers = np.concatenate([again, new])
        self._free, self._high = self._free[len(again) :], self._high + len(new)
        self._number_of, self._entry_of = grown(self._number_of, stop), grown(self._entry_of, self._high)
        self._number_of[first:stop] = numbers
        self._entry_of[numbers] = np.arange(first, stop)
        self._n_numbered = stop

    def _ascends(self, first: int, stop: int) -> bool:
        """Whether the entries from the one before `first` on ascend."""
        first = max(0, first - 1)
        if stop - first == 2:  # an engine adds one after the other: 1 us instead of 60
            return self._strings.bytes_of(first) < self._strings.bytes_of(first + 1)
        values = _plain(self._arrow(np.arange(first, stop)))
        return len(values) < 2 or bool(pc.all(pc.less(values[:-1], values[1:])).as_py())

    def find(self, ids: IdColumn) -> np.ndarray:
        """int64[n]: the number of each id; of whole numbers themselves, of other unknown ids UNKNOWN."""
        if len(ids.numbers) == 0:
            return ids.numbers
        self.require(ids.type)
        if ids.values is None:
            return ids.numbers
        entries = self._strings.find(ids)
        if self._number_of is None:
            return entries.astype(np.int64)
        return np.where(entries < 0, UNKNOWN, self._number_of[np.maximum(entries, 0)]).astype(np.int64)

    def find_all(self, ids: Any, name: str = "id") -> np.ndarray:
        """`find` for one id, a list or an array of ids. Whole numbers given as an array pass quickly."""
        return self.find(id_column(ids, name))

    def find_any(self, value: Any) -> np.ndarray:
        """int64[1]: the number of an id, or int64[0] for a value that is not among these ids and cannot be."""
        kind = type_of_value(value)
        if kind is None or self.type is None or kind.name != self.type.name or (kind.is_number and abs(value) >= 2**63):
            return np.empty(0, np.int64)
        found = self.find(one_id(value))
        return found if self.is_plain else found[found != UNKNOWN]

    def add_one(self, value: Any, name: str = "id") -> int:
        """The number of one id, which may be new."""
        return int(self.add(one_id(value, name))[0])

    # -- from inside to outside

    def arrow(self, numbers: np.ndarray) -> pa.Array | pa.ChunkedArray:
        """The ids of these numbers."""
        if self.is_plain:
            return pa.array(numbers, pa.int64())
        return self._arrow(self._entries(numbers))

    def python(self, numbers: np.ndarray) -> list[Id]:
        """The same as a list."""
        if self.is_plain:
            return numbers.tolist()
        found = map(self._strings.bytes_of, self._entries(numbers).tolist())
        assert self.type is not None
        return (
            [uuid.UUID(bytes=each) for each in found] if self.type.name == "uuid" else [each.decode() for each in found]
        )

    def array(self, numbers: np.ndarray) -> np.ndarray:
        """The same as a NumPy array: int64, or objects."""
        if self.is_plain:
            return numbers
        out = np.empty(len(numbers), object)
        out[:] = self.python(numbers)
        return out

    def one(self, number: int) -> Id:
        return self.python(np.array([number], np.int64))[0]

    def _entries(self, numbers: np.ndarray) -> np.ndarray:
        return numbers if self._entry_of is None else self._entry_of[numbers]

    def _arrow(self, entries: np.ndarray) -> pa.Array | pa.ChunkedArray:
        raw, starts = self._strings.gathered(entries)
        assert self.type is not None
        if starts[-1] <= MAX_OFFSET:
            return self._as_arrow(raw, starts)
        edges = np.searchsorted(starts, np.arange(0, starts[-1], MAX_OFFSET // 2), "right") - 1
        edges = distinct(np.append(edges, len(entries)))
        parts = [
            self._as_arrow(raw[starts[a] : starts[b]], starts[a : b + 1] - starts[a])
            for a, b in zip(edges[:-1], edges[1:], strict=True)
        ]
        return pa.chunked_array(parts)

    def _as_arrow(self, raw: np.ndarray, starts: np.ndarray) -> pa.Array:
        assert self.type is not None
        n = len(starts) - 1
        if self.type.name == "uuid":
            return as_outside(
                pa.FixedSizeBinaryArray.from_buffers(pa.binary(UUID_BYTES), n, [None, pa.py_buffer(raw)]), self.type
            )
        return pa.StringArray.from_buffers(n, pa.py_buffer(starts.astype(np.int32)), pa.py_buffer(raw))

    # -- order

    def order(self, numbers: np.ndarray) -> np.ndarray:
        """int64[n]: positions that sort numbers by their ids."""
        return np.argsort(self.ranks(numbers), kind="stable")

    def order_within(self, numbers: np.ndarray, starts: np.ndarray) -> np.ndarray | None:
        """int64[n]: positions that sort each run of numbers by their ids; None if they ascend by number anyway."""
        if self.is_ordered or len(numbers) < 2:
            return None
        out = np.empty(len(numbers), np.int64)
        order_within(self.ranks(numbers), starts, out)
        return out

    def ranks(self, numbers: np.ndarray) -> np.ndarray:
        """int32[n] or int64[n]: numbers in the order of the ids. Of whole numbers, they themselves."""
        if self.is_ordered:
            return numbers
        ranks, entries = self._ranks, self._entries(numbers)
        if ranks is None and _FEW * len(numbers) < len(self._strings):
            own = distinct(np.sort(entries))
            order = np.asarray(pc.array_sort_indices(_plain(self._arrow(own))))
            of_own = np.empty(len(own), np.int32)
            of_own[order] = np.arange(len(own))
            return of_own[np.searchsorted(own, entries)]
        if ranks is None or len(ranks) <= int(entries.max(initial=0)):
            ranks = self._all_ranks()
        return ranks[entries]

    def _all_ranks(self) -> np.ndarray:
        n = len(self._strings)
        order = np.asarray(pc.array_sort_indices(_plain(self._arrow(np.arange(n)))))
        ranks = np.empty(n, np.int32)
        ranks[order] = np.arange(n)
        self._ranks = ranks
        return ranks

    def sorted_array(self, numbers: np.ndarray) -> np.ndarray:
        """The same as an array of objects."""
        out = np.empty(len(numbers), object)
        out[:] = self.sorted_python(numbers)
        return out

    def sorted_python(self, numbers: np.ndarray) -> list[Id]:
        """The ids of a few numbers, sorted."""
        found = self.python(numbers)
        return found if self.is_ordered else sorted(found)

    # -- upkeep

    def has_unused(self, n_used: int) -> bool:
        """Whether more than half of the names are of ids that are in use no more."""
        return len(self._strings) > 2 * n_used + _SLACK

    def only(self, numbers: np.ndarray) -> Names:
        """The table of these ids alone, with the numbers they have. Readers of this one keep it."""
        kept = distinct(np.sort(numbers)).astype(np.int32)
        made = Names(self.what)
        made.type, made._is_ordered, made._high = self.type, self._is_ordered, self._high
        made._strings.reset(*self._strings.gathered(self._entries(kept)))
        made._number_of, made._n_numbered = kept, len(kept)
        made._entry_of = np.full(self._high, UNKNOWN, np.int32)
        made._entry_of[kept] = np.arange(len(kept))
        is_free = np.ones(self._high, bool)
        is_free[kept] = False
        made._free = np.flatnonzero(is_free).astype(np.int32)
        return made

    # -- files

    def header(self) -> dict[str, Any]:
        return {"type": header_of(self.type), "high": self._high, "ordered": self._is_ordered}

    def arrays(self) -> dict[str, np.ndarray]:
        """All arrays, not copied. There are none for whole numbers."""
        if self.is_plain:
            return {}
        n = len(self._strings)
        numbers = {} if self._number_of is None else {"numbers": self._number_of[:n], "free": self._free}
        return self._strings.arrays() | numbers

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], header: dict[str, Any] | None, what: str = "index") -> Names:
        """The table of a result of `arrays` and `header`. Without a header, as older files have none: whole numbers."""
        made = cls(what)
        if header is None:
            made.type = INT64
            return made
        made.type, made._high, made._is_ordered = of_header(header["type"]), header["high"], header["ordered"]
        if made.is_plain:
            return made
        made._strings.restore(arrays)
        if "numbers" in arrays:
            for name in ("numbers", "free"):
                require_array(arrays, name, np.int32, "a table of ids")
            made._number_of, made._free, made._n_numbered = arrays["numbers"], arrays["free"], len(arrays["numbers"])
            made._entry_of = np.full(made._high, UNKNOWN, np.int32)
            made._entry_of[made._number_of] = np.arange(made._n_numbered)
        return made

    @classmethod
    def rebuilt(cls, arrays: dict[str, np.ndarray], header: dict[str, Any] | None) -> Names:
        """`from_arrays` of what nobody vouches for. Raises InvalidInput; the hash table is made anew."""
        made = cls()
        made.type = INT64 if header is None else of_header(header["type"])
        if made.is_plain or header is None:
            return made
        starts, raw = (
            checked_column(arrays["id_starts"], np.int64, "ids"),
            checked_column(arrays["id_bytes"], np.uint8, "ids"),
        )
        require_starts(starts, len(raw), "ids")
        n, kind = len(starts) - 1, made.type
        if kind is not None and kind.name == "uuid" and (np.diff(starts) != UUID_BYTES).any():
            raise InvalidInput("an id is no UUID")
        large_string_array(raw, starts).validate(full=kind is not None and kind.name != "uuid")
        made._strings.reset(raw, starts)
        numbers = checked_column(arrays["numbers"], np.int32, "numbers", n) if "numbers" in arrays else np.arange(n)
        free = checked_column(arrays["free"], np.int32, "free") if "numbers" in arrays else numbers[:0]
        made._high, all_numbers = len(numbers) + len(free), np.sort(np.concatenate([numbers, free]))
        if len(made._strings) != n or not np.array_equal(all_numbers, np.arange(made._high)):
            raise InvalidInput("the ids and their numbers do not fit together")
        made._number_of, made._free, made._n_numbered = numbers.astype(np.int32), free.astype(np.int32), n
        made._entry_of = np.full(made._high, UNKNOWN, np.int32)
        made._entry_of[numbers] = np.arange(n)
        made._is_ordered = False
        return made

    def are_known(self, numbers: np.ndarray) -> bool:
        """Whether each of these is the number of an id."""
        if self.is_plain or len(numbers) == 0:
            return True
        is_within = 0 <= int(numbers.min()) and int(numbers.max()) < self._high
        return is_within and bool((self._entries(numbers) != UNKNOWN).all())


def _plain(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """What Arrow sorts: the 16 bytes of UUIDs."""
    if isinstance(values, pa.ChunkedArray):
        return pa.chunked_array([_plain(chunk) for chunk in values.chunks])
    return values.storage if isinstance(values, pa.ExtensionArray) else values
