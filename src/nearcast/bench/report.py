"""Results for people: a table on the screen, or Markdown for a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rich.table import Table

from nearcast.bench.results import Figures, Result, figures


class Column(NamedTuple):
    title: str
    text: Callable[[Figures], str]


def _number(value: float | None, unit: str = "") -> str:
    """Three digits that count; thousands without a fraction."""
    if value is None:
        return "-"
    if value == 0:
        return f"0{unit}"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 0.1 else 4
    return f"{value:,.{digits}f}{unit}"


_COLUMNS = (
    Column("workload", lambda line: line.workload),
    Column("subscriptions", lambda line: f"{line.subscriptions:,}"),
    Column("messages", lambda line: line.group),
    Column("method", lambda line: line.method),
    Column("µs batch", lambda line: _number(line.batch_us)),
    Column("ratio", lambda line: _number(line.ratio, "×")),
    Column("µs single", lambda line: _number(line.single_us)),
    Column("p99", lambda line: _number(line.single_p99_us)),
    Column("candidates", lambda line: _number(line.candidates)),
    Column("matches", lambda line: _number(line.matches)),
    Column("nodes", lambda line: _number(line.nodes)),
    Column("build s", lambda line: _number(line.build_s)),
    Column("bytes", lambda line: _number(line.bytes_per_subscription)),
    Column("insert µs", lambda line: _number(line.insert_us)),
    Column("remove µs", lambda line: _number(line.remove_us)),
)
_TABLE_COLUMN = Column("µs table", lambda line: _number(line.table_us))
_LEFT_ALIGNED = ("workload", "messages", "method")


def columns_of(lines: list[Figures]) -> list[Column]:
    """The columns that say something here: also varied parameters, and the table API if it was measured."""
    shown = {"base", "subscriptions"}
    varied = [name for name in (lines[0].varied if lines else {}) if name not in shown]
    extra = [Column(name, lambda line, name=name: label_of(line.varied[name])) for name in varied]  # type: ignore[misc]
    tables = [_TABLE_COLUMN] if any(line.table_us is not None for line in lines) else []
    return [*extra, *_COLUMNS, *tables]


def label_of(value: Any) -> str:
    """A varied value in few letters: pairs of equals as one number."""
    if isinstance(value, list | tuple):
        parts = [label_of(part) for part in dict.fromkeys(value)]
        return "–".join(parts)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def screen_table(result: Result, baseline: str | None = None) -> Table:
    """For the terminal."""
    lines = figures(result, baseline)
    columns = columns_of(lines)
    table = Table(title=f"{result.sweep['name']}: {_where(result)}", caption=_caption(result, baseline))
    for column in columns:
        table.add_column(
            column.title, justify="left" if column.title in _LEFT_ALIGNED else "right", overflow="fold"
        )
    previous = None
    for line in lines:
        case = (line.workload, line.subscriptions, line.group, str(line.varied))
        if previous is not None and case != previous:
            table.add_section()
        table.add_row(*(column.text(line) for column in columns))
        previous = case
    return table


def markdown_table(result: Result, baseline: str | None = None) -> str:
    """For a page of docs."""
    lines = figures(result, baseline)
    columns = columns_of(lines)
    rules = ["---" if column.title in _LEFT_ALIGNED else "---:" for column in columns]
    rows = [[column.title for column in columns], rules]
    rows += [[column.text(line) for column in columns] for line in lines]
    body = "\n".join("| " + " | ".join(row) + " |" for row in rows)
    return f"{_where(result)}\n\n{body}\n\n{_caption(result, baseline)}\n"


def _where(result: Result) -> str:
    around = result.surroundings
    versions = ", ".join(f"{name} {number}" for name, number in around["versions"].items())
    commit = f", commit {around['commit']}" if around.get("commit") else ""
    return f"{around['cpu']}, {around['cores']} cores, Python {around['python']}, {versions}{commit}"


def _caption(result: Result, baseline: str | None) -> str:
    against = f"'{baseline}'" if baseline else "the best other method"
    left_out = {f"{name}: {reason}" for run in result.runs for name, reason in run["left_out"].items()}
    notes = [f"CPU time; ratio = time of {against} / own time; all methods found the same pairs"]
    notes += [f"left out {note}" for note in sorted(left_out)]
    return "; ".join(notes)
