"""README's example runs, and its links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import nearcast as nc

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_it_stands() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 10 and "nc.Engine()" in example and "nc.build_index(" in example
    exec(compile(example, "README.md", "exec"), {})


def test_the_two_commands_come_first() -> None:
    assert README.index("make demo") < README.index("make test") < README.index("## ")


def test_methods_said_to_work_do() -> None:
    (row,) = [line for line in README.splitlines() if line.startswith("| methods |")]
    today = row.split("|")[2]
    told = set(re.findall(r"`([a-z-]+)`", today))
    assert len(told) >= 4 and told <= {info.name for info in nc.methods()}


def test_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).is_file(), link
