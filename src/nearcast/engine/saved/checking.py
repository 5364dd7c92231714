"""Checks saved files of which nobody knows who wrote them: what `nearcast check` does."""

from __future__ import annotations

import os
from pathlib import Path

from nearcast.arguments import a_path
from nearcast.arrays.bundle import read_bundle
from nearcast.arrays.manifest import MANIFEST, format_of
from nearcast.engine.index import Index
from nearcast.engine.saved.rebuilt import rebuilt_index, rebuilt_vocabulary
from nearcast.engine.saved.saved_engine import ENGINE_FORMAT
from nearcast.errors import CorruptFile, InvalidInput, NotSaved
from nearcast.matching.subscription_set import part_of
from nearcast.moving.moving import MOVING_FORMAT
from nearcast.storage.index_folder import INDEX_FORMAT
from nearcast.text.vocabulary_file import read_file
from nearcast.topk.topk import TOPK_FORMAT

_KNOWN = {fmt[0]: fmt for fmt in (INDEX_FORMAT, ENGINE_FORMAT, TOPK_FORMAT, MOVING_FORMAT)}
CHECKSUMS = "checksums and sizes are right; opening trusts its arrays"


def check_path(path: str | os.PathLike[str], out: str | os.PathLike[str] | None = None) -> list[dict[str, str]]:
    """What was checked: path, format and outcome of each saved thing. Raises CorruptFile for the first that is wrong.

    With `out`, a sound copy of the one index at `path` is written there.
    """
    root = Path(a_path(path))
    if root.is_file():
        header, arrays = read_file(root, verify=True)
        rebuilt_vocabulary(arrays, header)
        return [{"path": str(root), "format": "vocabulary", "checked": "all of it is sound"}]
    places = [root] if (root / MANIFEST).is_file() else sorted(each.parent for each in root.glob(f"**/{MANIFEST}"))
    if not places:
        raise NotSaved(f"{root} holds nothing that nearcast saves")
    found = [_checked(place) for place in places]
    if out is not None:
        indexes = [index for _, index in found if index is not None]
        if len(found) != 1 or len(indexes) != 1:
            raise InvalidInput("--out copies one index; give its folder as PATH")
        indexes[0].save(out)
    return [line for line, _ in found]


def _checked(place: Path) -> tuple[dict[str, str], Index | None]:
    name = format_of((place / MANIFEST).read_bytes())
    fmt = _KNOWN.get(name or "")
    line = {"path": str(place), "format": name or "unknown"}
    if fmt is None:
        if name is None:
            raise CorruptFile(f"{place} has a damaged {MANIFEST}")
        return line | {"checked": "of a format that is not checked"}, None
    arrays, header = read_bundle(place, fmt)
    if fmt == INDEX_FORMAT:
        index = rebuilt_index(arrays, header)
        return line | {"checked": f"{len(index):,} subscriptions, all of them sound"}, index
    if fmt == ENGINE_FORMAT:
        index = rebuilt_index(part_of(arrays, "index"), header["index"])
        return line | {"checked": f"{len(index):,} subscriptions are sound; opening trusts the other arrays"}, None
    return line | {"checked": CHECKSUMS}, None
