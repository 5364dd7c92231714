"""The output of `nearcast match`: files, the summary, and the first pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rich.console import Group

from nearcast.cli.console import name_value_grid, note, show, titled_table
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa

SHOWN_PAIRS = 20


class Answer(NamedTuple):
    """The result of matching two tables."""

    matches: pa.Table
    rejects: pa.Table  # of both tables
    summary: dict[str, Any]


def require_table_file(path: Path | None) -> None:
    """Raise InvalidInput before any work if results cannot be written to this kind of file."""
    if path is not None and not path.name.lower().endswith((".parquet", ".pq", ".csv", ".jsonl")):
        raise InvalidInput(f"{path} has no known ending; results go to .parquet, .csv or .jsonl")


def write_tables(answer: Answer, out: Path | None, rejects: Path | None) -> None:
    """Write the matches and the rejects; note the first reject if there is no file for them."""
    from nearcast.tables import write_table

    if out is not None:
        write_table(answer.matches, out)
    if rejects is not None:
        write_table(answer.rejects, rejects)
    elif answer.rejects.num_rows:
        first = answer.rejects.slice(0, 1).to_pylist()[0]
        note(
            f"{answer.rejects.num_rows:,} bad rows left out, the first in {first['table']}, "
            f"row {first['row']}, column '{first['column']}': {first['reason']}; --rejects FILE keeps them"
        )


def show_answer(answer: Answer, out: Path | None, as_json: bool) -> None:
    """Print the summary, and the first pairs unless they were written to a file."""
    first = answer.matches.slice(0, SHOWN_PAIRS).to_pylist()
    if out is not None:
        lines = [*_lines(answer.summary), ("written to", str(out))]
        show({**answer.summary, "out": str(out)}, as_json, name_value_grid(lines))
        return
    rows = [[_format_cell(value) for value in pair.values()] for pair in first]
    pairs = titled_table(f"first of {answer.matches.num_rows:,} pairs", answer.matches.column_names, rows)
    parts: list[Any] = [pairs] if first else []
    show({**answer.summary, "first_pairs": first}, as_json, Group(*parts, name_value_grid(_lines(answer.summary))))


def _format_cell(value: Any) -> str:
    """An id unchanged; a score with six digits; an empty string for None."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    work, per = summary["work"], max(summary["messages"], 1)
    method, chosen = str(summary["method"]), summary["chosen"]
    return [
        ("method", method if method == chosen else f"{method}, which chose {chosen}"),
        ("subscriptions", f"{summary['subscriptions']:,}"),
        ("messages", f"{summary['messages']:,}"),
        ("pairs", f"{summary['pairs']:,}"),
        ("bad rows", f"{summary['rejects']:,}"),
        ("read and build", f"{summary['build_seconds']:.2f} s"),
        ("match", f"{summary['us_per_message']:.2f} µs per message"),
        ("memory", f"{summary['bytes_per_subscription']:.0f} bytes per subscription"),
        ("work per message", f"{work['nodes'] / per:.1f} nodes, {work['candidates'] / per:.1f} candidates"),
    ]
