"""The corpus of `make fuzz`, and a few changes of each entry."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random

import pytest

from fuzz_targets import CORPUS, TARGETS, corpus, feed


@pytest.mark.parametrize("target", TARGETS)
def test_the_corpus_is_answered_or_refused(target: str) -> None:
    entries = corpus(target)
    assert len(entries) >= 5
    for content in entries:
        feed(target, content)


@pytest.mark.parametrize("target", TARGETS)
def test_changes_of_the_corpus_are_answered_or_refused(target: str) -> None:
    spec = importlib.util.spec_from_file_location("fuzz_main", Path(CORPUS).parent / "__main__.py")
    assert spec is not None and spec.loader is not None
    fuzz = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fuzz)
    random, entries = Random(11), corpus(target)
    for _ in range(25):
        feed(target, fuzz.changed(random.choice(entries), entries, random))


def test_an_error_of_another_kind_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(content: bytes) -> None:
        raise TypeError("a bug")

    monkeypatch.setitem(TARGETS, "expressions", broken)
    with pytest.raises(TypeError):
        feed("expressions", b"a")
