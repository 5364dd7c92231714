"""What workers keep between tasks is not walked through after each of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from nearcast.spark.runtime.daemon import frozen_after


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def test_what_a_task_leaves_behind_is_passed_over_by_later_collections() -> None:
    kept: list[list[int]] = []

    def task(code: int) -> int:
        kept.extend([n] for n in range(50_000))
        return code

    before = gc.get_freeze_count()
    assert frozen_after(task)(7) == 7
    assert gc.get_freeze_count() >= before + 50_000
    assert len(gc.get_objects()) < 10_000


def test_a_task_that_leaves_little_freezes_nothing_and_its_garbage_is_still_collected() -> None:
    gc.collect()
    gc.freeze()
    before = gc.get_freeze_count()
    assert frozen_after(lambda: 0)() == 0
    assert gc.get_freeze_count() <= before  # fewer where something frozen went away meanwhile
