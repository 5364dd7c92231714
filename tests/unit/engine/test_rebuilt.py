"""Saved indexes of strangers: forged arrays with a valid checksum are refused or harmless, and nothing crashes."""

from __future__ import annotations

import copy
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nearcast as nc
from nearcast.engine.saved.rebuilt import rebuilt_index
from nearcast.errors import CorruptFile
from nearcast.matching.subscription_set import SubscriptionSet
from nearcast.storage.index_folder import load_index, save_index

MESSAGES = {
    "id": [1, 2, 3],
    "text": ["hot dog stand", "dog incident", "cat"],
    "x": [0.5, 1.5, 2.5],
    "y": [0.5, 1.5, 2.5],
    "severity": [1, 5, 9],
}


def built(ids: list[object]) -> nc.Index:
    """An index with phrases, prefixes, filters, NOT, several rows, polygons, circles, expiry and ranked rows."""
    polygon = '{"type": "Polygon", "coordinates": [[[0, 0], [3, 0], [0, 3], [0, 0]]]}'
    wanted = {
        "id": ids,
        "expression": ['"hot dog"', "incid* OR cat", "dog NOT cat", "{severity >= 3}", None, "dog"],
        "tokens": [None, None, None, None, ["dog"], None],
        "region": ["world", polygon, "circle(1, 1, 300km)", "circle(179.9, 0, 30km)", None, polygon],
        "xmin": [None, None, None, None, 0.0, None],
        "ymin": [None, None, None, None, 0.0, None],
        "xmax": [None, None, None, None, 3.0, None],
        "ymax": [None, None, None, None, 3.0, None],
        "kind": ["match"] * 4 + ["rank"] + ["match"],
        "threshold": [None] * 4 + [0.2, None],
        "expires": [None] * 5 + ["2027-01-01T00:00:00Z"],
    }
    return nc.build_index(wanted, on_bad="raise")


@pytest.mark.parametrize("ids", [[1, 2, 3, 4, 5, 6], ["f", "e", "d", "c", "b", "a"]])
def test_an_index_that_is_built_anew_matches_as_before(ids: list[object], tmp_path: Path) -> None:
    index = built(ids)
    index.remove(ids[5:])
    index.insert({"id": ids[:1], "expression": ["stand"], "region": ["world"]})
    index.save(tmp_path / "i")
    again = nc.open_index(tmp_path / "i", trust=False)
    assert again.match(MESSAGES).equals(index.match(MESSAGES)) and len(index.match(MESSAGES)) > 3
    assert again.subscriptions().equals(index.subscriptions()) and list(again) == list(index)
    again.save(tmp_path / "copy")
    assert nc.open_index(tmp_path / "copy").match(MESSAGES).equals(index.match(MESSAGES))


FORGE = textwrap.dedent(
    """
    import sys
    import numpy as np
    import nearcast as nc
    from nearcast.storage.index_folder import load_index, save_index
    folder, seed, part, messages = sys.argv[1], int(sys.argv[2]), sys.argv[3], eval(sys.argv[4])
    random, outcomes = np.random.default_rng(seed), {"refused": 0, "harmless": 0}
    arrays, header = load_index(folder)
    names = [name for name in arrays if name.startswith(part) and arrays[name].size]
    for name in names:
        for change in range(6):
            forged = {each: np.array(array) for each, array in arrays.items()}
            own = forged[name].reshape(-1)
            at = random.integers(len(own))
            if change < 3:
                bits = own[at : at + 1].view(np.uint8)
                bits[random.integers(len(bits))] ^= 1 << random.integers(8)
            elif change < 5:
                own[at] = np.array([2**31 - 1, -1][change - 3]).astype(own.dtype)
            else:
                forged[name] = forged[name][: len(forged[name]) // 2]
            save_index(folder + "-forged", forged, header)
            try:
                index = nc.open_index(folder + "-forged", trust=False)
                index.match(messages)
                index.remove(list(index)[:2])
                index.match(messages)
                outcomes["harmless"] += 1
            except nc.NearcastError:
                outcomes["refused"] += 1
    print(outcomes["refused"], outcomes["harmless"])
    """
)


@pytest.mark.parametrize("part", ["vocabulary", "names", "match.store", "match.shapes", "rank", "sources", "weights"])
def test_forged_arrays_are_refused_or_harmless(part: str, tmp_path: Path) -> None:
    built(["f", "e", "d", "c", "b", "a"]).save(tmp_path / "i")
    command = [sys.executable, "-c", FORGE, str(tmp_path / "i"), "5", part, repr(MESSAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    refused, harmless = map(int, done.stdout.split())
    assert refused > 0 and refused + harmless >= 6


@pytest.fixture(scope="module")
def state() -> tuple[Any, Any]:
    """(arrays, header) of an index."""
    return built([1, 2, 3, 4, 5, 6]).state()


@pytest.mark.parametrize("path", ["analyser", "vocabulary", "match", "match/parts", "match/space", "names/type"])
@pytest.mark.parametrize("value", [None, 7, "x", [], {}, {"bounds": "x"}, -(10**30)])
def test_forged_headers_are_refused(path: str, value: object, state: tuple[Any, Any]) -> None:
    arrays, header = state[0], copy.deepcopy(state[1])
    *outer, last = path.split("/")
    inner = header
    for name in outer:
        inner = inner[name]
    inner[last] = value
    try:
        rebuilt_index({name: np.array(array) for name, array in arrays.items()}, header)
    except nc.NearcastError as error:
        assert isinstance(error, CorruptFile) or "version" in str(error)
    else:
        assert path in ("names/type", "match/parts"), "only an empty value may be harmless"


def test_the_arrays_of_the_method_are_not_read(tmp_path: Path) -> None:
    index = built([1, 2, 3, 4, 5, 6])
    index.save(tmp_path / "i")
    arrays, header = load_index(tmp_path / "i")
    parts = (".method.", ".termless.", ".owners.")
    kept = {name: np.array(array) for name, array in arrays.items() if not any(part in name for part in parts)}
    save_index(tmp_path / "bare", kept, header)
    assert nc.open_index(tmp_path / "bare", trust=False).match(MESSAGES).equals(index.match(MESSAGES))
    assert isinstance(index.matcher, SubscriptionSet)
