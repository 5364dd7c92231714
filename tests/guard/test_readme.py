"""README's example runs, its commands come first, and the methods that the documentation names exist."""

from __future__ import annotations

import re

import nearcast as nc
from markdown_pages import ROOT
from nearcast.moving.method import moving_methods

README = (ROOT / "README.md").read_text()


def test_the_example_runs_as_it_stands() -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    lines = [line for line in example.splitlines() if line.strip()]
    assert len(lines) <= 10 and "nc.Engine()" in example and "nc.build_index(" in example
    exec(compile(example, "README.md", "exec"), {})


def test_the_two_commands_come_first() -> None:
    assert README.index("make demo") < README.index("make test") < README.index("## ")


def test_methods_said_to_work_do() -> None:
    page = (ROOT / "docs" / "how-to" / "choose-a-method.md").read_text()
    (row,) = [line for line in page.splitlines() if line.startswith("| methods |")]
    today = row.split("|")[2]
    named = set(re.findall(r"`([a-z-]+)`", today))
    known = {info.name for kind in (None, "top") for info in nc.methods(kind)} | set(moving_methods())
    assert len(named) >= 4 and named <= known
