"""What `make fuzz` feeds: each target takes bytes, and returns or raises a NearcastError."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

import nearcast as nc
from nearcast.arrays.manifest import MANIFEST
from nearcast.geo.geojson import parse_region
from nearcast.geo.space import Space
from nearcast.sharding.live.changes import read_changes
from nearcast.storage.index_folder import load_index, save_index
from nearcast.tables import Dialect, as_arrow
from nearcast.text.analyser import Analyser
from nearcast.text.clauses import clauses
from nearcast.text.expression import parse

CORPUS = Path(__file__).parent / "fuzz" / "corpus"
_ANALYSERS = (Analyser(), Analyser.named("english"), Analyser(fold_accents=True))


def expressions(content: bytes) -> None:
    """The clauses of an expression, alone and in a table."""
    text = content[1:].decode("utf-8", "replace")
    clauses(parse(text, _ANALYSERS[content[0] % 3 if content else 0]))
    nc.build_index({"id": [1], "expression": [text], "region": ["world"]}, "brute", on_bad="skip")


def regions(content: bytes) -> None:
    """A region, on the globe and in a plane, alone and in a table."""
    text = content.decode("utf-8", "replace")
    nc.build_index({"id": [1], "tokens": [["a"]], "region": [text]}, "brute", on_bad="skip")
    try:
        parse_region(text, Space.of((-1000, -1000, 1000, 1000)))
    except nc.NearcastError:
        pass
    region = parse_region(text, Space.of(None))
    region.overlaps(region.boxes(Space.of(None)))


def tables(content: bytes) -> None:
    """A file that is a table of messages or of subscriptions. Its first byte chooses the ending."""
    ending = (".csv", ".jsonl", ".parquet")[content[0] % 3 if content else 0]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"table{ending}"
        file.write_bytes(content[1:])
        index = nc.build_index({"id": [1], "tokens": [["a"]], "region": ["world"]}, "brute")
        try:
            index.match(str(file), on_bad="skip")
        except nc.NearcastError:
            pass
        nc.build_index(str(file), "brute", on_bad="skip")


def saved(content: bytes) -> None:
    """A saved index of a stranger: bytes say which bits of which array, or of the manifest, are flipped."""
    arrays, header = _index()
    forged = {name: np.array(array) for name, array in arrays.items()}
    names = sorted(name for name in forged if forged[name].size)
    for start in range(0, len(content) - 4, 5):
        which, at, bit = content[start], int.from_bytes(content[start + 1 : start + 4], "big"), content[start + 4]
        raw = forged[names[which % len(names)]].reshape(-1).view(np.uint8)
        raw[at % len(raw)] ^= 1 << bit % 8
    with tempfile.TemporaryDirectory() as folder:
        save_index(f"{folder}/i", forged, header)
        if len(content) % 5 == 1:  # the manifest too
            file = Path(folder) / "i" / MANIFEST
            text = bytearray(file.read_bytes())
            text[content[-1] * 7 % len(text)] ^= 1
            file.write_bytes(text)
        index = nc.open_index(f"{folder}/i", trust=False)
        index.match({"id": [1], "text": ["a hot dog"], "x": [0.5], "y": [0.5]})


def changes(content: bytes) -> None:
    """A change log as JSON Lines."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "changes.jsonl"
        file.write_bytes(content)
        read_changes(as_arrow(str(file)), "changes.jsonl", Dialect(Analyser(), Space.of(None), "skip"))


TARGETS: dict[str, Callable[[bytes], None]] = {
    "expressions": expressions,
    "regions": regions,
    "geojson": regions,
    "tables": tables,
    "saved": saved,
    "changes": changes,
}


def feed(target: str, content: bytes) -> None:
    """Give bytes to a target. Anything but an answer or a NearcastError is raised."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            TARGETS[target](content)
        except nc.NearcastError as error:
            assert str(error)


def corpus(target: str) -> list[bytes]:
    """The files of a target's corpus."""
    return [file.read_bytes() for file in sorted((CORPUS / target).iterdir())]


@cache
def _index() -> tuple[dict[str, np.ndarray], dict[str, object]]:
    polygon = '{"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [0, 3], [0, 0]]]}'
    wanted = {
        "id": ["p", "q", "r", "s"],
        "expression": ['"hot dog"', "incid* OR cat", "a NOT b", "{severity >= 3}"],
        "region": ["world", polygon, "circle(1, 1, 300km)", "circle(179.9, 0, 30km)"],
    }
    with tempfile.TemporaryDirectory() as folder:
        nc.build_index(pa.table(wanted)).save(f"{folder}/i")
        arrays, header = load_index(f"{folder}/i")
        return {name: np.array(array) for name, array in arrays.items()}, header
