"""Results as tables: for the screen, or in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nearcast.bench.reports.figures import Figures, figures
from nearcast.bench.runs.results import Result
from nearcast.bench.runs.table_api import PARTS


class Column(NamedTuple):
    title: str
    text: Callable[[Figures], str]


def format_number(value: float | None) -> str:
    """A number with at least two significant digits; without a fraction from 100 on."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4
    return f"{value:,.{digits}f}"


def _times(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.01×" if value < 0.01 else f"{value:.0f}×" if value >= 100 else f"{value:.2g}×"


def format_value(value: Any) -> str:
    """A parameter's value in few letters; a pair of equal numbers as one number."""
    if isinstance(value, list | tuple):
        return "–".join(format_value(part) for part in dict.fromkeys(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _count(value: int | None) -> str:
    return f"{value or 0:,}"


def _megabytes(value: int | None) -> str:
    return format_number(None if value is None else value / 1e6)


def _difference(value: float | None) -> str:
    """Two digits after the point: further digits of a difference are noise. Never -0."""
    return format_number(None if value is None else round(value, 2) + 0.0)


def _column(title: str, *path: str, text: Callable[[Any], str] = format_number) -> Column:
    """A column with one figure: an attribute of the line, or an entry below it."""

    def cell(line: Figures) -> str:
        value = getattr(line, path[0])
        for key in path[1:]:
            value = (value or {}).get(key)
        return text(value)

    return Column(title, cell)


_METHOD = _column("method", "method", text=str)
_TIMES = (
    _column("of", "messages", text=_count),
    _column("µs", "batch_us"),
    _column("ratio", "ratio", text=_times),
    _column("single", "single_us"),
    _column("p99", "single_p99_us"),
)
_WORK = (_column("nodes", "nodes"), _column("compared", "candidates"), _column("matches", "matches"))
_COSTS = (
    _column("build s", "build_s"),
    _column("bytes", "bytes_per_subscription"),
    _column("stored", "stored_per_subscription"),
    _column("whole", "whole_per_subscription"),
    _column("peak MB", "peak_bytes", text=_megabytes),
    _column("insert µs", "insert_us"),
    _column("remove µs", "remove_us"),
)
_TABLES = (
    _column("of", "tables", "messages", text=_count),
    _column("table", "tables", "whole"),
    _column("/ kernel", "tables", "ratio", text=_times),
    *(_column(part, "tables", part) for part in PARTS),
    _column("rest", "tables", "rest", text=_difference),
)
_ONES = (
    _column("of", "match_one", "messages", text=_count),
    _column("CPU", "match_one", "cpu_us"),
    _column("CPU p99", "match_one", "cpu_p99_us"),
    _column("wall", "match_one", "wall_us"),
    _column("wall p99", "match_one", "wall_p99_us"),
)
_WHOLE = (
    _column("of", "whole", "messages", text=_count),
    _column("kernel", "whole", "kernel"),
    _column("whole", "whole", "whole"),
    _column("/ kernel", "whole", "ratio", text=_times),
)
_ENGINE = (
    _column("of", "engine", "messages", text=_count),
    _column("publish", "engine", "publish"),
    _column("p99", "engine", "publish_p99"),
    _column("subscribe", "engine", "subscribe"),
    _column("both", "engine", "both"),
    _column("1 thread /s", "engine", "one_per_s"),
    _column("2 threads /s", "engine", "two_per_s"),
    _column("ratio", "engine", "ratio", text=_times),
    _column("tables /s", "engine", "table_one_per_s"),
    _column("ratio", "engine", "table_ratio", text=_times),
)
_FROM_TABLE = (
    _column("build µs", "table_build", "whole"),
    _column("reading", "table_build", "read"),
    _column("indexing", "table_build", "index", text=_difference),
)


class Section(NamedTuple):
    """One kind of table. It is shown if something of it was measured."""

    title: str
    measured: Callable[[Figures], Any]
    columns: Callable[[Sequence[Figures]], Sequence[Column]]


def _thread_columns(lines: Sequence[Figures]) -> list[Column]:
    """Messages per second for each number of threads, and the ratio to the first number."""
    counts = list(dict.fromkeys(count for line in lines for count in line.threads or {}))
    columns = [_column("of", "threads", counts[0], "messages")]
    for count in counts:
        columns.append(_column("1 thread /s" if count == "1" else f"{count} threads /s", "threads", count, "per_s"))
        if count != counts[0]:
            columns.append(_column("ratio", "threads", count, "ratio", text=_times))
    return columns


_SECTIONS = (
    Section("", lambda line: True, lambda lines: (*_TIMES, *_WORK)),
    Section("through a set", lambda line: line.whole, lambda lines: _WHOLE),
    Section("through tables", lambda line: line.tables, lambda lines: _TABLES),
    Section("by match_one", lambda line: line.match_one, lambda lines: _ONES),
    Section("by threads", lambda line: line.threads, _thread_columns),
    Section("through an engine", lambda line: line.engine, lambda lines: _ENGINE),
)


def screen_report(result: Result, baseline: str | None = None) -> Group:
    """Tables for the terminal: for each case the costs of a message by group, then the costs of the index."""
    parts: list[Any] = [
        Text(f"{result.sweep['name']}: {where_measured(result.surroundings)}"),
        Text(_reading(result, baseline)),
    ]
    for case, lines in _cases(result, baseline):
        for group, members in groupby(lines, key=lambda line: line.group):
            own = list(members)
            for section, measured in _sections(own):
                title = f"{case}, {group} messages {section.title}".strip()
                parts += _screen_table(title, measured, [_METHOD, *section.columns(measured)])
        own = _one_group(lines)
        parts += _screen_table(f"{case}, the index", own, [_METHOD, *_COSTS])
        if built := [line for line in own if line.table_build]:
            parts += _screen_table(f"{case}, the index from a table", built, [_METHOD, *_FROM_TABLE])
    return Group(*parts)


def _sections(lines: Sequence[Figures]) -> list[tuple[Section, list[Figures]]]:
    """The sections that have lines, each with its lines."""
    filled = [(section, [line for line in lines if section.measured(line)]) for section in _SECTIONS]
    return [(section, measured) for section, measured in filled if measured]


def _screen_table(title: str, lines: Sequence[Figures], columns: Sequence[Column]) -> list[Text | Table]:
    """Title and table as separate parts: rich wraps the title of a table to the width of the table."""
    table = Table(box=None, padding=(0, 1, 0, 0))
    for column in columns:
        is_name = column is _METHOD
        # On a narrow screen long labels are wrapped; numbers are never cut.
        table.add_column(column.title, justify="left" if is_name else "right", no_wrap=not is_name)
    for line in lines:
        table.add_row(*(column.text(line) for column in columns))
    return [Text(f"\n{title}", style="italic"), table]


def markdown_report(result: Result, baseline: str | None = None) -> str:
    """Markdown tables for a page: one for each section that was measured, and one of the indexes."""
    cases = _cases(result, baseline)
    lines = [line for _, members in cases for line in members]
    case = Column("workload", _case_of)
    group = Column("messages", lambda line: line.group)
    tables = []
    for section, measured in _sections(lines):
        title = f"{section.title[0].upper()}{section.title[1:]}:\n\n" if section.title else ""
        tables.append(title + _markdown_table(measured, [case, group, _METHOD, *section.columns(measured)]))
    own = [line for _, members in cases for line in _one_group(members)]
    indexes = [_markdown_table(own, [case, _METHOD, *_COSTS])]
    if built := [line for line in own if line.table_build]:
        indexes.append("From a table:\n\n" + _markdown_table(built, [case, _METHOD, *_FROM_TABLE]))
    return "\n\n".join([where_measured(result.surroundings), *tables, *indexes, _reading(result, baseline)]) + "\n"


def _markdown_table(lines: Sequence[Figures], columns: Sequence[Column]) -> str:
    is_number = [column.title not in ("workload", "messages", "method") for column in columns]
    rows = [[column.title for column in columns]]
    return markdown_table(rows + [[column.text(line) for column in columns] for line in lines], is_number)


def markdown_table(rows: Sequence[Sequence[str]], is_number: Sequence[bool]) -> str:
    """The rows, the first of them the titles, as a Markdown table. Columns of numbers are right-aligned."""
    rule = ["---:" if number else "---" for number in is_number]
    return "\n".join("| " + " | ".join(map(_cell, row)) + " |" for row in (rows[0], rule, *rows[1:]))


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _cases(result: Result, baseline: str | None) -> list[tuple[str, list[Figures]]]:
    return [(case, list(lines)) for case, lines in groupby(figures(result, baseline), key=_case_of)]


def _case_of(line: Figures) -> str:
    named = [line.workload, f"{line.subscriptions:,} subscriptions"]
    shown = ("base", "subscriptions")
    named += [f"{name} {format_value(value)}" for name, value in line.varied.items() if name not in shown]
    return ", ".join(named)


def _one_group(lines: Sequence[Figures]) -> list[Figures]:
    """The lines of the first group. The index is the same for all groups."""
    return [line for line in lines if line.group == lines[0].group]


def where_measured(around: dict[str, Any]) -> str:
    """The environment of a run in one line."""
    versions = ", ".join(f"{name} {number}" for name, number in around["versions"].items())
    commit = f", commit {around['commit']}" if around.get("commit") else ""
    peak = around.get("peak_memory_bytes")
    memory = f" Peak resident memory of the process: {format_number(peak / 1e6)} MB." if peak else ""
    return f"{around['cpu']}, {around['cores']} cores, Python {around['python']}, {versions}{commit}.{memory}"


def _reading(result: Result, baseline: str | None) -> str:
    """How to read the tables, and which methods were left out."""
    against = f"'{baseline}'" if baseline else "the best other method"
    text = (
        "µs of CPU time per message, in a batch of that size (of) and one call each (single, p99); "
        f"ratio = time of {against} / own time; compared = candidates; "
        "bytes per subscription: of the method without the stored rows, of the stored rows, of the whole index. "
        "All methods found the same pairs on the messages that they had in common."
    )
    left_out = {f"{name} ({reason})" for run in result.runs for name, reason in run["left_out"].items()}
    return f"{text} Left out: {'; '.join(sorted(left_out))}." if left_out else text
