"""What nearcast says to 120 mistakes is what was read and approved. `error_cases` says how to renew the file."""

from __future__ import annotations

from tests.golden.error_cases import TEXTS, texts, written


def test_texts_of_errors_are_as_approved() -> None:
    assert written() == TEXTS.read_text(encoding="utf-8")


def test_there_are_enough_cases_and_each_has_a_name_of_its_own() -> None:
    names = [name for name, _ in texts()]
    assert len(names) >= 100 and len({*names}) == len(names)
