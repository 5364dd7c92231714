"""Markdown pages as tests read them: fenced blocks, links and headings."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


class Block(NamedTuple):
    """One fenced block: its language, its text, and the text of the ```text block right behind a ```python block."""

    language: str
    text: str
    output: str | None


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    text = page.read_text()
    made = []
    for found in _FENCE.finditer(text):
        after = _FENCE.match(text, found.end() + 2) if text[found.end() :].startswith("\n\n") else None
        is_output = found[1] == "python" and after is not None and after[1] == "text"
        made.append(Block(found[1], found[2], after[2] if after is not None and is_output else None))
    return made


def run_python(page: Path) -> int:
    """Run the Python blocks of a page in order, as one script, and compare what they print; return how many ran."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    script = [block for block in blocks(page) if block.language == "python"]
    for number, block in enumerate(script, 1):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, f"{page.name}, Python block {number}", "exec"), namespace)
        if block.output is not None:
            assert printed.getvalue() == block.output, f"{page}, Python block {number} prints\n{printed.getvalue()}"
    return len(script)


def links(page: Path) -> Iterator[tuple[str, Path, str]]:
    """The links of a page to files of the repository: as written, the file, and the heading behind `#`."""
    prose = _FENCE.sub("", page.read_text())
    for link in _LINK.findall(prose):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        yield link, (page.parent / path).resolve() if path else page, anchor


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
