"""The example of the page about kind `rank` runs."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "rank.md").read_text()


def test_the_example_runs_as_it_stands() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(compile(example, "rank.md", "exec"), {})
