"""The page about the command line says what the commands say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nearcast.cli.docs import helps, page

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "command-line.md"
HELPS = dict(helps())


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `make docs`"


def test_every_command_of_the_design_is_there() -> None:
    wanted = {"match", "methods", "generate", "bench run", "bench report", "bench sweeps", "demo", "warmup"}
    wanted |= {f"pipeline {name}" for name in ("ingest", "vocabulary", "build", "match", "stream", "run")}
    assert {f"nearcast {name}" for name in wanted} <= set(HELPS)


@pytest.mark.parametrize("command", sorted(HELPS))
def test_every_command_has_an_example_and_explains_its_options(command: str) -> None:
    text = HELPS[command]
    assert f"\n## {command}\n" in PAGE.read_text()
    if "COMMAND [ARGS]" in text and command != "nearcast":
        return  # a group: its commands have the examples
    assert "Example" in text and text.count("nearcast ") > 1, text
    for option in re.findall(r"\n  (-.*)", text):
        assert re.search(r"\S {2,}\S", option), f"an option without a word of help: {option}"


@pytest.mark.parametrize("command", sorted(set(HELPS) - {"nearcast", "nearcast bench", "nearcast pipeline"}))
def test_every_command_speaks_json(command: str) -> None:
    assert "--json" in HELPS[command]
