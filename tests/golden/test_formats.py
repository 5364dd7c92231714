"""Saved indexes of earlier releases open and match as they did, or are refused by name."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import nearcast as nc
from nearcast.errors import ForeignVersion
from nearcast.model import RANK
from nearcast.spark.batch.match import match_batch
from nearcast.spark.batch.one_process import OneProcess

FORMATS = Path(__file__).parent / "formats"
KIND_MATCH = "pyramid"
"""Its expected matches have no ranked subscriptions; those of `brute` have both kinds."""


def unpacked(name: str, folder: Path) -> Path:
    with zipfile.ZipFile(FORMATS / name) as archive:
        archive.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def format_4(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpacked("index-4.zip", tmp_path_factory.mktemp("index-4"))


@pytest.mark.parametrize("method", [info.name for info in nc.methods()])
def test_an_index_of_format_4_opens_and_matches_as_before(format_4: Path, method: str) -> None:
    index = nc.open_index(format_4 / method)
    expected = json.loads((format_4 / "expected.json").read_text())
    wanted = expected["brute" if index.subscriptions_of(RANK) is not None else KIND_MATCH]
    assert index.match(_messages(format_4)).to_pydict() == wanted
    index.remove([1, 2])
    assert not {1, 2} & set(index.match(_messages(format_4))["subscription"].to_pylist())


def test_another_format_is_refused_with_the_remedy(tmp_path: Path) -> None:
    folder = unpacked("index-4.zip", tmp_path) / "brute"
    manifest = folder / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"version": 4', '"version": 3'))
    with pytest.raises(ForeignVersion, match="version 3; this release reads nearcast-index version 4: build it again"):
        nc.open_index(folder)


def test_a_sharded_index_of_format_3_matches_as_before(tmp_path: Path) -> None:
    folder = unpacked("sharded-index-3.zip", tmp_path)
    for layout in ("replicated", "sharded"):
        out = folder / layout
        match_batch(
            cast(Any, OneProcess()), str(folder / "index"), str(folder / "messages.parquet"), str(out), layout=layout
        )
        found = pq.read_table(out).sort_by([("message", "ascending"), ("subscription", "ascending")])
        assert found.to_pydict() == json.loads((folder / "expected.json").read_text()), layout


def test_a_vocabulary_of_format_1_opens_with_its_counts() -> None:
    vocabulary = nc.Vocabulary.open(FORMATS / "vocabulary-1.bin")
    assert vocabulary.tokens(np.arange(len(vocabulary))).to_pylist() == ["rain", "Straße", "漢字", "#tag"]
    assert vocabulary.n_documents == 2 and vocabulary.weights()[:2] == pytest.approx([np.log(2), np.log(3)])


def _messages(folder: Path) -> pa.Table:
    return pa.table(json.loads((folder / "messages.json").read_text()))
