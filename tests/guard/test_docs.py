"""The documentation is whole: pages are reachable, links lead somewhere, examples run, commands and files exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from markdown_pages import ROOT, anchors, blocks, links, run_python
from nearcast.cli.api_reference import api_markdown
from nearcast.cli.docs import helps

DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *(ROOT / "examples").rglob("*.md")])
USER_PAGES = [DOCS / "tutorial.md", *sorted((DOCS / "how-to").glob("*.md")), *sorted((DOCS / "reference").glob("*.md"))]
HELPS = dict(helps())


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def test_every_page_is_reachable_from_the_readme() -> None:
    seen, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page not in seen:
            seen.add(page)
            waiting += [file for _, file, _ in links(page) if file.suffix == ".md" and file.is_file()]
    assert [name(page) for page in PAGES if page not in seen] == []


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_to_files_and_headings(page: Path) -> None:
    for link, file, anchor in links(page):
        assert file.is_file(), f"{name(page)} links to {link}, which is not there"
        if anchor:
            assert file.suffix != ".md" or anchor in anchors(file), f"{name(page)} links to {link}: no such heading"


ON_SPARK = DOCS / "how-to" / "match-spark-dataframes.md"  # tests/spark runs it in a session


@pytest.mark.parametrize("page", [page for page in USER_PAGES if page != ON_SPARK], ids=name)
def test_python_blocks_run_in_order_and_print_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(page)


def test_the_tutorial_states_the_output_of_nearly_every_block() -> None:
    stated = [block.output is not None for block in blocks(DOCS / "tutorial.md") if block.language == "python"]
    assert len(stated) >= 8 and all(stated)


def commands(page: Path) -> list[list[str]]:
    """The nearcast commands in the shell blocks of a page, as words."""
    lines = [line for block in blocks(page) if block.language == "sh" for line in block.text.splitlines()]
    words = [shlex.split(line, comments=True) for line in lines if line.startswith("nearcast ")]
    return [line for line in words if line]


@pytest.mark.parametrize("page", [ROOT / "README.md", *USER_PAGES], ids=name)
def test_commands_and_their_options_exist(page: Path) -> None:
    for words in commands(page):
        command = max((path for path in HELPS if words[: len(path.split())] == path.split()), key=len)
        for option in (word.split("=")[0] for word in words if re.fullmatch(r"--?[a-z][a-z-]*(=.*)?", word)):
            assert re.search(rf"(^|[\s,]){re.escape(option)}\b", HELPS[command]), f"{name(page)}: {command} {option}"


def test_the_python_api_page_is_current() -> None:
    assert (DOCS / "reference" / "python-api.md").read_text() == api_markdown(), "run `make docs`"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_files_that_the_page_names_exist(page: str) -> None:
    for path in re.findall(r"`((?:[a-z_]+/)+(?:[\w.]+)?)`", (ROOT / page).read_text()):
        planned = path in ("server/", "delivery/", "topk/", "moving/", "my_method/")
        found = [(base / path).exists() for base in (ROOT, ROOT / "src" / "nearcast")]
        assert planned or any(found) or "my_method" in path, f"{page} names {path}"


@pytest.mark.parametrize("walk", ["Walk 1", "Walk 2"])
def test_a_walk_names_at_most_fifteen_files(walk: str) -> None:
    _, _, text = (ROOT / "ARCHITECTURE.md").read_text().partition(f"## {walk}")
    steps = re.findall(r"^\d+\. (.*)$", text.partition("\n## ")[0], re.MULTILINE)
    files = {path for step in steps for path in re.findall(r"`([\w/]+\.py)`", step)}
    assert 8 <= len(files) <= 15, files
