"""Every script of examples/ runs in a process of its own and prints what its last lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(FOLDER.glob("*.py"))


def promised(script: Path) -> str:
    """The comment lines behind `# Prints:`, without their signs."""
    _, _, lines = script.read_text().partition("# Prints:\n")
    return "".join(line.removeprefix("# ") for line in lines.splitlines(keepends=True))


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_prints_what_it_promises(script: Path, tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert promised(script) and done.stdout == promised(script)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_opens_with_what_it_shows_and_is_listed(script: Path) -> None:
    first = script.read_text().splitlines()[0]
    assert first.startswith("# ") and first.endswith(".")
    assert f"]({script.name})" in (FOLDER / "README.md").read_text()
