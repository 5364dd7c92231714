"""A folder that replaces another: at every moment, one of them is in its place or comes back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from nearcast.ingest import output_folder
from nearcast.ingest.output_folder import NewFolder


class Killed(BaseException):
    """In place of a kill -9: nothing of ours runs afterwards."""


def published(place: Path, content: str) -> None:
    with NewFolder(place) as new:
        (new.path / "a.parquet").write_text(content)
        new.publish()


def content(place: Path) -> str:
    return (place / "a.parquet").read_text()


@pytest.mark.parametrize("can_exchange", [True, False])
def test_the_old_folder_or_the_new_one_survives_a_kill_between_any_two_renames(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_exchange: bool
) -> None:
    if not can_exchange:
        monkeypatch.setattr(output_folder, "_exchange", lambda *_: False)
    n_renames, fatal = 0, 1
    rename = os.rename

    def counted(*args: Any) -> None:
        nonlocal n_renames
        n_renames += 1
        if n_renames == fatal:
            raise Killed
        rename(*args)

    monkeypatch.setattr(output_folder.shutil, "rmtree", lambda *_, **__: None)  # what a killed process does not do
    monkeypatch.setattr(os, "rename", counted)
    for fatal in (1, 2, 3):
        place = tmp_path / f"place {fatal}"
        n_renames = -1  # the first folder comes without harm
        published(place, "old")
        n_renames = 0
        try:
            published(place, "new")
            assert content(place) == "new"
        except Killed:
            assert not can_exchange, "there is no second rename"
        with NewFolder(place):  # the next run; it fails
            assert content(place) in ("old", "new")
    assert can_exchange or (tmp_path / "place 2/a.parquet").read_text() == "old"


def test_what_killed_runs_left_is_removed(tmp_path: Path) -> None:
    place = tmp_path / "place"
    for name in (".place.0123abcd", ".place.0123abcd.old"):
        (tmp_path / name).mkdir()
    published(place, "new")
    assert [path.name for path in tmp_path.iterdir()] == ["place"] and content(place) == "new"
