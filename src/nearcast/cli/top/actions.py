"""What `nearcast top` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from rich.console import Group
from rich.progress import Progress

from nearcast.cli.console import name_value_grid, progress, show, text_table, working
from nearcast.errors import InvalidInput
from nearcast.tables import Id, as_arrow, write_table
from nearcast.tables.changes import joined_changes
from nearcast.tables.input_checks.file_errors import naming_file
from nearcast.topk.topk import TopK

CHUNK = 512
"""Messages between two updates of the progress bar."""
SHOWN_LISTS = 3
SHOWN_MESSAGES = 5
LONGEST_TEXT = 70


class Request(NamedTuple):
    """What the command was called with."""

    subscriptions: Path
    messages: Path
    window: str | None
    method: str
    space: tuple[float, ...] | None
    weights: Path | None
    options: dict[str, Any]


def run(request: Request, out: Path | None, as_json: bool) -> None:
    if out is not None and not out.name.lower().endswith((".parquet", ".pq", ".csv", ".jsonl")):
        raise InvalidInput(f"{out} has no known ending; results go to .parquet, .csv or .jsonl")
    with progress(quiet=as_json) as shown:
        with working(shown, "reading and indexing subscriptions"):
            subscriptions = as_arrow(request.subscriptions)
            with naming_file(request.subscriptions):
                top = TopK(
                    subscriptions, request.window, request.method, request.weights, request.space, **request.options
                )
        with working(shown, "reading messages"):
            messages = as_arrow(request.messages)
        start = time.perf_counter()
        with naming_file(request.messages):
            changes = _publish(top, messages, request.options["extra"], shown)
        seconds = time.perf_counter() - start
    if out is not None:
        write_table(changes, out)
    _show(top, subscriptions, messages, _summary(top, changes, seconds), out, as_json)


def _publish(top: TopK, messages: pa.Table, extra: str | list[str], shown: Progress) -> pa.Table:
    """The changes as from `top.publish`, but in chunks, so that the progress bar moves."""
    incoming = top.read_messages(messages, extra=extra)
    task = shown.add_task("publishing", total=incoming.size)
    parts = []
    for start in range(0, incoming.size, CHUNK):
        stop = min(start + CHUNK, incoming.size)
        parts.append(top.publish_read(incoming.part(start, stop)))
        shown.advance(task, stop - start)
    return top.changes_table(joined_changes(parts))


def _summary(top: TopK, changes: pa.Table, seconds: float) -> dict[str, Any]:
    n_messages = top.stats["messages"]
    return {
        "method": top.method.name,
        "window": str(top.window.size),
        "subscriptions": len(top),
        "messages": n_messages,
        "changes": changes.num_rows,
        "publish_seconds": seconds,
        "us_per_message": 1e6 * seconds / max(1, n_messages),
        "work": top.stats,
    }


def _show(
    top: TopK, subscriptions: pa.Table, messages: pa.Table, summary: dict[str, Any], out: Path | None, as_json: bool
) -> None:
    """Print the summary and some of the lists."""
    ids = [number for number in subscriptions["id"].to_pylist()[: 100 * SHOWN_LISTS] if top.results(number).num_rows]
    lists = {number: top.results(number).slice(0, SHOWN_MESSAGES).to_pylist() for number in ids[:SHOWN_LISTS]}
    lines = [(name.replace("_", " "), _formatted(summary[name])) for name in summary if name != "work"]
    summary = summary if out is None else summary | {"out": str(out)}
    lines = lines if out is None else [*lines, ("written to", str(out))]
    tables = [_list_table(number, best, subscriptions, messages) for number, best in lists.items()]
    show(
        summary | {"lists": {str(number): best for number, best in lists.items()}},
        as_json,
        Group(*tables, name_value_grid(lines)),
    )


def _formatted(value: Any) -> str:
    return f"{value:,.2f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def _list_table(number: Id, best: list[dict[str, Any]], subscriptions: pa.Table, messages: pa.Table) -> Any:
    """The best messages of one subscription with their words."""
    rows = [(f"{each['score']:.4f}", str(each["message"]), _words(messages, each["message"])) for each in best]
    title = f"subscription {number}: {_words(subscriptions, number)}"
    return text_table(("score", "message", "text"), rows, title=title)


def _words(table: pa.Table, number: Id) -> str:
    """The text, or the tokens, of the row with this id."""
    row = table.slice(table["id"].to_pylist().index(number), 1).to_pylist()[0]
    words = row.get("text") or row.get("tokens") or ""
    text = words if isinstance(words, str) else " ".join(words)
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
