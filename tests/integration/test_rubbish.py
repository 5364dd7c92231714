"""Every public call, given anything at all, returns or raises a NearcastError of one readable line or a few."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import nearcast as nc
from rubbish import MAKERS, Call, calls, rubbish


@pytest.mark.parametrize("call", calls(), ids=str)
def test_rubbish_is_answered_or_refused(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failures = list[str]()
    for name in rubbish():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nc.NearcastWarning)
            try:
                call.of(rubbish()[name])
            except nc.NearcastError as error:
                if not 0 < len(str(error)) < 10_000:
                    failures.append(f"{name}: an error of {len(str(error))} characters")
            except Exception as error:
                failures.append(f"{name}: {type(error).__name__}: {error}"[:200])
    assert not failures, "\n".join([str(call), *failures])


def test_there_are_sixty_kinds_and_every_class_is_called() -> None:
    assert len(rubbish()) >= 60
    owners = {call.owner for call in calls()}
    assert owners >= set(MAKERS) and len(calls()) > 100
    assert all(make() is not None for make in MAKERS.values()), "the objects are right, so that refusals are of rubbish"
