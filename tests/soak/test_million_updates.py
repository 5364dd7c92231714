"""A million updates, mixed, with a look at the answers now and then."""

from __future__ import annotations

from pathlib import Path

import pytest

from changing_world import soak


@pytest.mark.slow
@pytest.mark.parametrize(
    ("method", "updates"), [("pyramid", 1_000_000), ("pyramid crowded=8 young=1000", 200_000), ("auto", 200_000)]
)
def test_answers_stay_exact_and_memory_is_used_again(method: str, updates: int, tmp_path: Path) -> None:
    soak(method, updates, updates // 5, tmp_path)
