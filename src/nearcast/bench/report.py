"""Results for people: tables on the screen, or Markdown for a page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from rich.console import Group
from rich.table import Table
from rich.text import Text

from nearcast.bench.results import Figures, Result, figures


class Column(NamedTuple):
    title: str
    text: Callable[[Figures], str]


def number(value: float | None) -> str:
    """At least two digits that count; from a hundred on without a fraction."""
    if value is None:
        return "-"
    digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4
    return f"{value:,.{digits}f}"


def _times(value: float | None) -> str:
    if value is None:
        return "-"
    return "<0.01×" if value < 0.01 else f"{value:.0f}×" if value >= 100 else f"{value:.2g}×"


def label_of(value: Any) -> str:
    """A varied value in few letters; a pair of equals as one number."""
    if isinstance(value, list | tuple):
        return "–".join(label_of(part) for part in dict.fromkeys(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


_METHOD = Column("method", lambda line: line.method)
_TIMES = (
    Column("of", lambda line: f"{line.messages:,}"),
    Column("µs", lambda line: number(line.batch_us)),
    Column("ratio", lambda line: _times(line.ratio)),
    Column("single", lambda line: number(line.single_us)),
    Column("p99", lambda line: number(line.single_p99_us)),
)
_TABLE = Column("table", lambda line: number(line.table_us))
_WORK = (
    Column("nodes", lambda line: number(line.nodes)),
    Column("compared", lambda line: number(line.candidates)),
    Column("matches", lambda line: number(line.matches)),
)
_COSTS = (
    Column("build s", lambda line: number(line.build_s)),
    Column("bytes", lambda line: number(line.bytes_per_subscription)),
    Column("insert µs", lambda line: number(line.insert_us)),
    Column("remove µs", lambda line: number(line.remove_us)),
)


def _time_columns(lines: Sequence[Figures]) -> list[Column]:
    """The table API only where it was measured."""
    table = [_TABLE] if any(line.table_us is not None for line in lines) else []
    return [_METHOD, *_TIMES, *table, *_WORK]


def screen_report(result: Result, baseline: str | None = None) -> Group:
    """For the terminal: for each case, what a message costs by group, then what the index costs."""
    parts: list[Any] = [Text(f"{result.sweep['name']}: {_where(result)}"), Text(_reading(result, baseline))]
    for case, lines in _cases(result, baseline):
        for group, members in groupby(lines, key=lambda line: line.group):
            own = list(members)
            parts.append(_screen_table(f"{case}, {group} messages", own, _time_columns(own)))
        parts.append(_screen_table(f"{case}, the index", _one_group(lines), [_METHOD, *_COSTS]))
    return Group(*parts)


def _screen_table(title: str, lines: Sequence[Figures], columns: Sequence[Column]) -> Table:
    table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
    for column in columns:
        table.add_column(column.title, justify="left" if column is _METHOD else "right", no_wrap=True)
    for line in lines:
        table.add_row(*(column.text(line) for column in columns))
    return table


def markdown_report(result: Result, baseline: str | None = None) -> str:
    """For a page of docs: one table of messages, one of indexes."""
    cases = _cases(result, baseline)
    lines = [line for _, members in cases for line in members]
    case = Column("workload", _case_of)
    group = Column("messages", lambda line: line.group)
    messages = _markdown_table(lines, [case, group, *_time_columns(lines)])
    indexes = _markdown_table([line for _, members in cases for line in _one_group(members)], [case, _METHOD, *_COSTS])
    return f"{_where(result)}\n\n{messages}\n\n{indexes}\n\n{_reading(result, baseline)}\n"


def _markdown_table(lines: Sequence[Figures], columns: Sequence[Column]) -> str:
    is_text = [column.title in ("workload", "messages", "method") for column in columns]
    rows = [[column.title for column in columns], ["---" if text else "---:" for text in is_text]]
    rows += [[column.text(line) for column in columns] for line in lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _cases(result: Result, baseline: str | None) -> list[tuple[str, list[Figures]]]:
    return [(case, list(lines)) for case, lines in groupby(figures(result, baseline), key=_case_of)]


def _case_of(line: Figures) -> str:
    named = [line.workload, f"{line.subscriptions:,} subscriptions"]
    shown = ("base", "subscriptions")
    named += [f"{name} {label_of(value)}" for name, value in line.varied.items() if name not in shown]
    return ", ".join(named)


def _one_group(lines: Sequence[Figures]) -> list[Figures]:
    """The index is the same for all groups: the lines of the first."""
    return [line for line in lines if line.group == lines[0].group]


def _where(result: Result) -> str:
    around = result.surroundings
    versions = ", ".join(f"{name} {number}" for name, number in around["versions"].items())
    commit = f", commit {around['commit']}" if around.get("commit") else ""
    return f"{around['cpu']}, {around['cores']} cores, Python {around['python']}, {versions}{commit}."


def _reading(result: Result, baseline: str | None) -> str:
    """How to read the figures, and what is not there."""
    against = f"'{baseline}'" if baseline else "the best other method"
    said = (
        "µs of CPU time per message, in a batch of so many and (single, p99) one call each; "
        f"ratio = time of {against} / own time; compared = candidates; "
        "bytes per subscription beyond the stored rows. "
        "On the messages that they had in common all methods found the same pairs."
    )
    left_out = {f"{name} ({reason})" for run in result.runs for name, reason in run["left_out"].items()}
    return f"{said} Left out: {'; '.join(sorted(left_out))}." if left_out else said
