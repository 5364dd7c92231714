"""Saved indexes of earlier releases open and match as they did, or are refused by name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest

import nearcast as nc
from nearcast.errors import ForeignVersion
from nearcast.model import RANK

FORMATS = Path(__file__).parent / "formats"
KIND_MATCH = "pyramid"
"""Its expected matches have no ranked subscriptions; those of `brute` have both kinds."""


@pytest.fixture(scope="module")
def format_3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index-3")
    with zipfile.ZipFile(FORMATS / "index-3.zip") as archive:
        archive.extractall(folder)
    return folder


@pytest.mark.parametrize("method", [info.name for info in nc.methods()])
def test_an_index_of_format_3_opens_and_matches_as_before(format_3: Path, method: str) -> None:
    index = nc.open_index(format_3 / method)
    expected = json.loads((format_3 / "expected.json").read_text())
    wanted = expected["brute" if len(index) > len(expected[KIND_MATCH]) and _is_ranked(index) else KIND_MATCH]
    assert index.match(_messages(format_3)).to_pydict() == wanted
    index.remove([1, 2])
    assert not {1, 2} & set(index.match(_messages(format_3))["subscription"].to_pylist())


def test_another_format_is_refused_with_the_remedy(format_3: Path) -> None:
    manifest = format_3 / "brute" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 3', '"version": 2'))
    with pytest.raises(ForeignVersion, match="version 2; this release reads nearcast-index version 3"):
        nc.open_index(format_3 / "brute")


def _messages(folder: Path) -> pa.Table:
    return pa.table(json.loads((folder / "messages.json").read_text()))


def _is_ranked(index: nc.Index) -> bool:
    return index.subscriptions_of(RANK) is not None
