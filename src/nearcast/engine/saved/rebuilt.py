"""Indexes from strangers: what is saved is checked, and everything that follows from it is built anew.

Opening an index trusts its arrays: a checksum says that they are as they were written, not who wrote them. Here only
rows, tokens, ids, shapes and the kept table are read, each after a check of its sizes, offsets and ranges. Hash tables
and the arrays of the method are not read; rows pass the intake as new ones do.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import shapely

from nearcast.arrays.arrow import large_string_array
from nearcast.arrays.checked import checked_column, require_starts
from nearcast.engine.index import Index
from nearcast.engine.payload.sources import Sources
from nearcast.errors import CorruptFile, ForeignVersion, InvalidInput
from nearcast.geo.shapes.columns import NO_SHAPES, ShapeColumns
from nearcast.geo.shapes.table import ShapeTable
from nearcast.geo.space import Space
from nearcast.matching.predicate import FLAG_LEAVING, FLAG_LIVE
from nearcast.matching.row_params import EXACT_TESTS, NO_WEIGHTS
from nearcast.matching.store import RowArrays, RowStore
from nearcast.matching.subscription_set import SubscriptionSet, part_of
from nearcast.matching.versions import Versions
from nearcast.model import KINDS, LARGEST_WEIGHT, NO_SHAPE, Kind, RowBatch
from nearcast.tables import Names
from nearcast.text.analyser import Analyser
from nearcast.text.vocabulary import VOCABULARY_VERSION, Vocabulary

Arrays = dict[str, np.ndarray]
_WRONG = (
    (InvalidInput, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, LookupError)
    + (pa.ArrowException, shapely.errors.ShapelyError, RecursionError)
)  # fmt: skip


def rebuilt_index(arrays: Arrays, header: dict[str, Any]) -> Index:
    """The index of a saved state that nobody vouches for. Raises CorruptFile for what no release has written."""
    try:
        return _rebuilt(arrays, header)
    except (CorruptFile, ForeignVersion):
        raise
    except _WRONG as error:
        raise CorruptFile(f"the index was not written by nearcast: {error}") from None


def _rebuilt(arrays: Arrays, header: dict[str, Any]) -> Index:
    analyser = Analyser.from_header(header["analyser"])
    vocabulary = rebuilt_vocabulary(part_of(arrays, "vocabulary"), header["vocabulary"])
    names = Names.rebuilt(part_of(arrays, "names"), header.get("names"))
    weights = _weights(arrays["weights"], len(vocabulary)) if "weights" in arrays else None
    sets, versions = list[SubscriptionSet](), Versions()
    for kind in KINDS.values():
        if kind.name in header:
            own, saved = part_of(arrays, kind.name), header[kind.name]
            batch, shapes = _rows(own, saved, kind, len(vocabulary), names)
            of_kind = NO_WEIGHTS if weights is None else weights
            made = SubscriptionSet(str(saved["method"]), _space(saved["space"]), None, kind, of_kind, versions)
            made.insert(batch, shapes)
            sets.append(made)
    sources = _sources(part_of(arrays, "sources"), names) if header.get("sources") else None
    return Index(sets[0], vocabulary, analyser, weights, sets[1:], names, sources)


def rebuilt_vocabulary(arrays: Arrays, header: dict[str, Any]) -> Vocabulary:
    """The vocabulary of a saved state, with a hash table of its own."""
    if header.get("version") != VOCABULARY_VERSION:
        raise ForeignVersion(f"vocabulary version {header.get('version')!r:.20}; rebuild it")
    starts = checked_column(arrays["token_starts"], np.int64, "token_starts")
    raw = checked_column(arrays["token_bytes"], np.uint8, "token_bytes")
    require_starts(starts, len(raw), "token_starts")
    tokens = large_string_array(raw, starts)
    tokens.validate(full=True)
    analyser, n = header["analyser"], len(starts) - 1
    made = Vocabulary(None if analyser is None else Analyser.from_header(analyser))
    if not np.array_equal(made.add(tokens), np.arange(n)):
        raise InvalidInput("the vocabulary has a token twice")
    if "derived" in arrays:
        derived = checked_column(arrays["derived"], np.int32, "derived")
        made.add_atoms(made.tokens(derived.astype(np.int64)).to_pylist())
        if len(made) != n:
            raise InvalidInput("the vocabulary lacks the tokens of a phrase or a group")
    frequencies = checked_column(arrays["frequencies"], np.int64, "frequencies", n)
    made.take_counts(frequencies, int(header["n_documents"]))
    return made


def _space(header: dict[str, Any]) -> Space:
    return Space.of(tuple(header["bounds"]) if header["planar"] else None)


def _weights(given: np.ndarray, n_terms: int) -> np.ndarray:
    weights = checked_column(given, np.float64, "weights")
    if len(weights) > n_terms or not ((weights >= 0) & (weights <= LARGEST_WEIGHT)).all():
        raise InvalidInput("the weights are not those of the tokens")
    return weights


def _rows(
    arrays: Arrays, header: dict[str, Any], kind: Kind, n_terms: int, names: Names
) -> tuple[RowBatch, ShapeColumns]:
    """The live rows of a kind, and their shapes."""
    space, own = _space(header["space"]), part_of(arrays, "store")
    n, n_arena = len(own["flags"]), len(own["terms"])
    _check_columns(own, n)
    live = np.flatnonzero(own["flags"] & (FLAG_LIVE | FLAG_LEAVING) == FLAG_LIVE)
    counts = own["n_terms"][live].astype(np.int64) + own["n_not"][live]
    first = own["offsets"][live]
    if not ((first >= 0) & (first <= n_arena - counts)).all():
        raise InvalidInput("a row has terms that are not there")
    if n_arena and not -1 <= int(own["terms"].min()) <= int(own["terms"].max()) < n_terms:
        raise InvalidInput("a row names a term that the vocabulary does not have")
    if not names.are_known(own["owner_ids"][live]):
        raise InvalidInput("a row is of a subscription that has no id")
    shapes, params = ShapeTable(space), EXACT_TESTS[kind.name](NO_WEIGHTS)
    if "shapes" in header["parts"]:
        shapes = ShapeTable.from_arrays(part_of(arrays, "shapes"), header["parts"]["shapes"])
    if kind.parameters:
        own_params = part_of(arrays, "params")
        params.restore({name: checked_column(each, np.float64, name) for name, each in own_params.items()})
        if any(len(column) < n for column in params.columns.values()):
            raise InvalidInput("the rows lack parameters")
    counters = {"high": n, "live": len(live), "live_unverified": 0, "arena_dead": 0, "in_id_order": False}
    batch, columns = RowStore.restored(own, counters, shapes, params, space).batch(live.astype(np.int32))
    if columns.size and not shapely.is_valid(columns.geometries[columns.geometries != None]).all():  # noqa: E711
        raise InvalidInput("a polygon is not valid")
    return batch, columns if columns.size else NO_SHAPES


def _check_columns(own: Arrays, n: int) -> None:
    """Replace the columns of the rows by those of the right types and sizes."""
    types = (np.float64, np.int64, np.uint16, np.uint16, np.uint8, np.int32)
    for name, dtype in zip(RowArrays._fields, types, strict=True):
        size = None if name == "terms" else n
        own[name] = checked_column(own[name], dtype, name, size, 4 if name == "boxes" else None)
    own["owner_ids"] = checked_column(own["owner_ids"], np.int64, "owner_ids", n)
    own["frequencies"] = np.empty(0, np.int64)
    for name, other in (("row_shapes", np.int32), ("expires", np.int64)):
        own[name] = checked_column(own[name], other, name, n if len(own[name]) else 0)
    if len(own["row_shapes"]) and int(own["row_shapes"].min()) < NO_SHAPE:
        raise InvalidInput("a row names a shape that is not there")


def _sources(arrays: Arrays, names: Names) -> Sources:
    numbers = checked_column(arrays["numbers"], np.int64, "numbers")
    if len(np.unique(numbers)) != len(numbers) or not names.are_known(numbers):
        raise InvalidInput("the kept subscriptions have other ids than the index")
    made = Sources.from_arrays({"numbers": numbers, "table": checked_column(arrays["table"], np.uint8, "table")})
    made.take(numbers).validate(full=True)
    return made
