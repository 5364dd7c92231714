"""What `nearcast match` does. This module is slow to import, so the command imports it when it runs."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from rich.console import Group
from rich.progress import Progress

from nearcast.arrays.ragged import starts_of
from nearcast.cli.console import name_value_grid, note, progress, show, text_table, warn, working
from nearcast.engine.index import Index, build_index
from nearcast.engine.saved.saved_index import open_index
from nearcast.errors import InvalidInput, MadeIds, MostlyRejected
from nearcast.indexes.auto import Auto
from nearcast.matching.variant import option_of
from nearcast.model import Found, Id
from nearcast.storage.location import locate
from nearcast.tables import REJECTS_SCHEMA, OnBad, as_arrow, write_table
from nearcast.tables.faults import NothingAccepted, first_fault
from nearcast.tables.input_checks.file_errors import naming_file
from nearcast.tables.matches import Pairs, sorted_pairs
from nearcast.tables.messages import Messages

SHOWN_PAIRS = 20
SHOWN_IDS = 10
SHOWN_BESIDE_OUT = 5
LONGEST_TEXT = 50
CHUNK = 16_384
"""Messages between two updates of the progress bar: at 2 µs each, 30 updates a second."""
_RESERVED = ("method", "space", "weights", "on_bad", "analyser", "subscriptions")


class Request(NamedTuple):
    """The subscriptions, and how to index them."""

    subscriptions: Path
    method: str | None
    space: tuple[float, ...] | None
    options: dict[str, Any]
    on_bad: OnBad
    weights: Path | None
    make_ids: bool
    analyser: str | None
    keep: list[str]
    extra: str | list[str]
    now: int | None  # microseconds since 1970


class Answer(NamedTuple):
    """The result of matching two tables."""

    matches: pa.Table
    sample: list[tuple[str, str, str, str]]  # text, place, and id and content of the subscription of the first matches
    rejects: pa.Table  # of both tables
    summary: dict[str, Any]
    never: list[Id]  # subscriptions that can never match


def run(
    request: Request,
    messages: Path,
    threads: int,
    save_to: Path | None,
    out: Path | None,
    rejects: Path | None,
    as_json: bool,
) -> None:
    for file in (out, rejects):  # before any work
        if file is not None and not file.name.lower().endswith((".parquet", ".pq", ".csv", ".jsonl")):
            raise InvalidInput(f"{file} has no known ending; results go to .parquet, .csv or .jsonl")
    with progress(quiet=as_json) as shown:
        try:
            answer = _answer(request, messages, threads, save_to, shown)
        except NothingAccepted as error:
            if rejects is not None:
                write_table(_concat_rejects(error.rejects, None), rejects)
            raise
    if rejects is not None:
        write_table(answer.rejects, rejects)
    for table in ("subscriptions", "messages"):
        _report_rejects(answer, table, is_kept=rejects is not None)
    if answer.never:
        shown_ids = ", ".join(map(str, answer.never[:SHOWN_IDS])) + (", …" if len(answer.never) > SHOWN_IDS else "")
        note(f"{len(answer.never):,} of the subscriptions can never match, such as a NOT a: {shown_ids}")
    if out is not None:
        write_table(answer.matches, out)
    _show_answer(answer, out, as_json)


def read_options(pairs: list[str]) -> dict[str, Any]:
    options = []
    for pair in pairs:
        key, value = option_of(pair) or (None, None)
        if key is None:
            raise InvalidInput(f"--option takes key=value, not '{pair}'")
        if key in _RESERVED:
            raise InvalidInput(f"'{key}' is no option of a method")
        options.append((key, value))
    return dict(options)


def _answer(request: Request, messages: Path, threads: int, save_to: Path | None, shown: Progress) -> Answer:
    seconds: dict[str, float] = {}

    @contextmanager
    def step(what: str, name: str) -> Iterator[None]:
        start = time.perf_counter()
        with working(shown, what):
            yield
        seconds[name] = time.perf_counter() - start

    with step("reading and indexing subscriptions", "build_seconds"):
        index = _index(request)
        subscription_rejects = index.rejects
    if save_to is not None:
        with step("saving the index", "save_seconds"):
            index.save(save_to)
    with step("reading messages", "read_seconds"):
        with notes_of(MadeIds), naming_file(messages):
            extra = _with_kept(request.extra, request.keep, "message")
            read = index.read_message_table(messages, on_bad=request.on_bad, now=request.now, extra=extra)
    start = time.perf_counter()
    matches, sample = _matches(index, read, request.keep, threads, shown)
    seconds["match_seconds"] = time.perf_counter() - start
    rejects = _concat_rejects(subscription_rejects, index.rejects)
    return Answer(
        matches,
        sample,
        rejects,
        _summary(index, read.batch.size, matches.num_rows, rejects.num_rows, seconds),
        index.never_matching,
    )


def _index(request: Request) -> Index:
    if not is_index(request.subscriptions):
        method, table = request.method or "auto", as_arrow(request.subscriptions)
        if request.make_ids and "id" not in table.column_names:
            table = table.append_column("id", pa.array(np.arange(table.num_rows)))
            note("the subscriptions have no column 'id'; row numbers, from 0, are their ids")
        elif "id" not in table.column_names:
            raise InvalidInput(
                f"{request.subscriptions} has no column 'id'; name it so, or use --make-ids", column="id"
            )
        options = request.options | {"analyser": request.analyser, "on_bad": request.on_bad}
        extra = _with_kept(request.extra, request.keep, "subscription")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MostlyRejected)  # it is a note, at the end
            with naming_file(request.subscriptions):
                return build_index(table, method, request.weights, request.space, extra=extra, **options)
    if request.method or request.space or request.options or request.weights or request.analyser:
        raise InvalidInput(
            f"{request.subscriptions} is a saved index: its method, space, options, weights and analyser are fixed; "
            "leave --method, --space, --option, --weights and --analyser out"
        )
    return open_index(request.subscriptions)


def _with_kept(extra: str | list[str], keep: list[str], side: str) -> str | list[str]:
    """The unknown columns that a table may have: those of --extra, and those that --keep names."""
    if extra == "ignore" or not keep:
        return extra
    names = [name.removeprefix(f"{side}.") for name in keep]
    return [*names, *(() if isinstance(extra, str) else extra)]


@contextmanager
def notes_of(kind: type[Warning]) -> Iterator[None]:
    """Warnings of this kind as notes."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always", kind)
        yield
    for warning in given:
        note(str(warning.message))


def is_index(path: Path) -> bool:
    """Whether this is a folder with a saved index. Without a manifest it still is one: `open_index` then says so."""
    place = locate(path)
    names = place.names() if place.is_folder() else []
    return "manifest.json" in names or any(name.startswith("arrays-") for name in names)


def _matches(
    index: Index, read: Messages, keep: list[str], threads: int, shown: Progress
) -> tuple[pa.Table, list[tuple[str, str, str, str]]]:
    """(the matches as from `index.match`, but found in chunks, so that the progress bar moves; a sample of them)."""
    batch = read.batch
    task = shown.add_task("matching", total=batch.size)
    parts = []
    for start in range(0, max(1, batch.size), CHUNK * threads):
        stop = min(start + CHUNK * threads, batch.size)
        parts.append(index.match_batch(batch.part(start, stop), threads))
        shown.advance(task, stop - start)
    ids = np.concatenate([part.ids for part in parts])
    starts = starts_of(np.concatenate([np.diff(part.starts) for part in parts]))
    scores = np.concatenate([part.scores for part in parts if part.scores is not None]) if index.is_scored else None
    found = Found(ids, starts, scores)
    pairs = sorted_pairs(read.ids.numbers, found, index.names)
    return index.matches(read, found, keep), _sample(index, read, pairs)


def _sample(index: Index, read: Messages, pairs: Pairs) -> list[tuple[str, str, str, str]]:
    """The first pairs as people read them: text, place, and id and content of the subscription."""
    ids = index.names.python(pairs.subscriptions[:SHOWN_PAIRS])
    at = pairs.messages()[:SHOWN_PAIRS]
    messages = read.table.take(pa.array(read.table_rows(at))).to_pylist()
    boxes = read.batch.boxes[at].tolist()
    wanted = [index[each] if index.source_nbytes else {} for each in ids]
    return [
        (_words_of(message), _place_of(box), str(id), _words_of(own))
        for message, box, id, own in zip(messages, boxes, ids, wanted, strict=True)
    ]


def _words_of(row: dict[str, Any]) -> str:
    """The expression, text or tokens of a row, cut to a line."""
    words = row.get("expression") or row.get("text") or row.get("tokens") or ""
    text = " ".join((words if isinstance(words, str) else " ".join(words)).split())
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _place_of(box: list[float]) -> str:
    return ", ".join(f"{each:.6g}" for each in (box[:2] if box[:2] == box[2:] else box))


def _concat_rejects(subscriptions: pa.Table | None, messages: pa.Table | None) -> pa.Table:
    """The rejects of both tables, with the name of the table as the first column."""
    named = []
    for name, table in (("subscriptions", subscriptions), ("messages", messages)):
        rows = table if table is not None else REJECTS_SCHEMA.empty_table()
        named.append(rows.add_column(0, "table", pa.array([name] * rows.num_rows, pa.string())))
    return pa.concat_tables(named)


def _summary(index: Index, n_messages: int, n_pairs: int, n_rejects: int, seconds: dict[str, float]) -> dict[str, Any]:
    method = index.matcher.method
    return {
        "method": index.method,
        "chosen": method.chosen.name if isinstance(method, Auto) else method.name,
        "subscriptions": len(index),
        "messages": n_messages,
        "pairs": n_pairs,
        "rejects": n_rejects,
        **seconds,
        "us_per_message": 1e6 * seconds["match_seconds"] / max(n_messages, 1),
        "bytes_per_subscription": index.nbytes / max(len(index), 1),
        "work": index.stats._asdict(),
    }


def _report_rejects(answer: Answer, table: str, is_kept: bool) -> None:
    """Note the first bad row of a table. Raises InvalidInput if no row is good."""
    rejects = answer.rejects.filter(pc.equal(answer.rejects["table"], table))
    n_good, n_bad = answer.summary[table], rejects.num_rows
    if not n_bad:
        return
    if not n_good:
        raise NothingAccepted(rejects, table)
    text = f"{n_bad:,} of {n_good + n_bad:,} rows of the {table} left out; {first_fault(rejects)}"
    text += "" if is_kept else "; --rejects FILE keeps them"
    if n_bad > n_good:
        warn(f"more than half: {text}")
    else:
        note(text)


def _show_answer(answer: Answer, out: Path | None, as_json: bool) -> None:
    """Print the summary, and the first pairs: fewer if all are written to a file."""
    first = answer.matches.slice(0, SHOWN_PAIRS).to_pylist()
    if out is not None:
        lines = [*_lines(answer.summary), ("written to", str(out))]
        parts = [name_value_grid(lines), *_shown(answer, SHOWN_BESIDE_OUT)]
        show({**answer.summary, "out": str(out)}, as_json, Group(*parts))
        return
    parts = [name_value_grid(_lines(answer.summary)), *_shown(answer, SHOWN_PAIRS)]
    show({**answer.summary, "first_pairs": first}, as_json, Group(*parts))


def _shown(answer: Answer, most: int) -> list[Any]:
    """A table of the first matches, if there are any: text, place, subscription, and the further columns."""
    if not answer.sample:
        return []
    further = answer.matches.column_names[2:]
    titles = ("message", "text", "place", "subscription", "wants", *further)
    rows = []
    first = answer.matches.slice(0, most).to_pylist()
    for pair, (text, place, id, wanted) in zip(first, answer.sample, strict=False):
        rows.append([str(pair["message"]), text, place, id, wanted, *(_format_cell(pair[name]) for name in further)])
    return [text_table(titles, rows, title=f"first of {answer.matches.num_rows:,} pairs")]


def _format_cell(value: Any) -> str:
    """An id unchanged; a score with six digits; words with spaces between them; an empty string for None."""
    if isinstance(value, list):
        return " ".join(map(str, value))
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
