"""`nearcast match`: two tables in, the matches out."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from rich.console import Group
from rich.table import Table

from nearcast.cli.console import note, progress, show, working
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress

    from nearcast.engine.index import Index
    from nearcast.model import MessageBatch
    from nearcast.tables import OnBad

CHUNK = 16_384
"""Messages between two moves of the progress bar: at 2 µs each, 30 times a second."""
SHOWN_PAIRS = 20
_TAKEN = ("method", "space", "weights", "on_bad", "analyser", "subscriptions")


class Request(NamedTuple):
    """What the user asked for, checked."""

    subscriptions: Path
    method: str | None
    space: tuple[float, ...] | None
    options: dict[str, Any]
    on_bad: OnBad
    weights: Path | None


class Answer(NamedTuple):
    matches: pa.Table
    rejects: pa.Table  # those of both tables
    summary: dict[str, Any]


def match(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[
        Path,
        typer.Argument(
            metavar="SUBSCRIPTIONS",
            help="Table (.parquet, .csv, .jsonl) or index folder.",
            show_default=False,
        ),
    ],
    messages: Annotated[
        Path, typer.Argument(metavar="MESSAGES", help="Table (.parquet, .csv, .jsonl).", show_default=False)
    ],
    method: Annotated[str | None, typer.Option(help="Index method; see `nearcast methods`. [default: auto]")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the matches to .parquet, .csv or .jsonl.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Cores to match with.")] = 1,
    on_bad: Annotated[
        Literal["raise", "skip"] | None,
        typer.Option(help="Bad rows: stop at the first, or skip them. [default: raise; skip with --rejects]"),
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Write the bad rows and their faults to .parquet, .csv or .jsonl.")
    ] = None,
    space: Annotated[
        str | None,
        typer.Option(metavar="XMIN,YMIN,XMAX,YMAX", help="Coordinates are planar, in these bounds. [default: lon/lat]"),
    ] = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the method; may be repeated.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="What tokens weigh for kind rank: a table (token, weight) or a vocabulary. [default: idf]"),
    ] = None,
    save_index: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save the index; DIR is SUBSCRIPTIONS the next time."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")] = False,
) -> None:
    """Match messages with subscriptions.

    Without --out the first 20 pairs are shown.

    \b
    Example:
      nearcast match subscriptions.parquet messages.csv --out matches.parquet --threads 2
      nearcast match subscriptions.parquet monday.csv --save-index index --out monday.parquet
      nearcast match index tuesday.csv --out tuesday.parquet
    """
    skip = on_bad == "skip" or (on_bad is None and rejects is not None)
    given = _options(option or [])
    request = Request(subscriptions, method, read_space(space), given, "skip" if skip else "raise", weights)
    for target in (out, rejects):
        _check_ending(target)
    with progress(quiet=as_json) as shown:
        answer = _answer(request, messages, threads, save_index, shown)
    _write(answer, out, rejects)
    show(_for_machines(answer, out), as_json, _for_people(answer, out))


def read_space(text: str | None) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        bounds = tuple(float(part) for part in text.split(","))
    except ValueError:
        bounds = ()
    if len(bounds) != 4:
        raise InvalidInput(f"--space takes four numbers, as in 0,0,1000,1000, not '{text}'")
    return bounds


def _options(pairs: list[str]) -> dict[str, Any]:
    from nearcast.matching.variant import option_of

    options: dict[str, Any] = {}
    for pair in pairs:
        option = option_of(pair)
        if option is None:
            raise InvalidInput(f"--option takes key=value, not '{pair}'")
        if option[0] in _TAKEN:
            raise InvalidInput(f"'{option[0]}' is no option of a method")
        options[option[0]] = option[1]
    return options


def _check_ending(target: Path | None) -> None:
    """Said before the work, not after it."""
    if target is not None and not target.name.lower().endswith((".parquet", ".pq", ".csv", ".jsonl")):
        raise InvalidInput(f"{target} has no known ending; results go to .parquet, .csv or .jsonl")


def _answer(request: Request, messages: Path, threads: int, save_to: Path | None, shown: Progress) -> Answer:
    clock = _Clock()
    with working(shown, "reading and indexing subscriptions"):
        index = _index(request)
        subscription_rejects = index.rejects
        clock.lap("build_seconds")
    if save_to is not None:
        with working(shown, "saving the index"):
            index.save(save_to)
            clock.lap("save_seconds")
    with working(shown, "reading messages"):
        batch = index.read_messages(messages, on_bad=request.on_bad)
        clock.lap("read_seconds")
    matches = _matches(index, batch, threads, shown)
    clock.lap("match_seconds")
    rejects = _together(subscription_rejects, index.rejects)
    summary = _summary(index, batch.size, matches.num_rows, rejects.num_rows, clock.laps)
    return Answer(matches, rejects, summary)


def _index(request: Request) -> Index:
    from nearcast.engine.index import build_index, open_index

    if not _is_index(request.subscriptions):
        method = request.method or "auto"
        return build_index(
            request.subscriptions, method, request.weights, request.space, on_bad=request.on_bad, **request.options
        )
    if request.method or request.space or request.options or request.weights:
        raise InvalidInput(
            f"{request.subscriptions} is a saved index: its method, space, options and weights are fixed; "
            "leave --method, --space, --option and --weights out"
        )
    return open_index(request.subscriptions)


def _is_index(path: Path) -> bool:
    """Also one that lost its manifest: it is then refused as an index, not misread as a folder of tables."""
    return path.is_dir() and ((path / "manifest.json").exists() or any(path.glob("arrays-*")))


def _matches(index: Index, batch: MessageBatch, threads: int, shown: Progress) -> pa.Table:
    """As `index.match` does, but in chunks, for the bar. The table was read whole: repeated ids are seen."""
    import numpy as np

    from nearcast.tables import matches_table

    task = shown.add_task("matching", total=batch.size)
    ids, counts = [np.empty(0, np.int64)], [np.zeros(1, np.int64)]
    scores = [np.empty(0)] if index.is_scored else None
    for start in range(0, batch.size, CHUNK * threads):
        stop = min(start + CHUNK * threads, batch.size)
        found = index.match_batch(batch.part(start, stop), threads)
        ids.append(found.ids)
        counts.append(np.diff(found.starts))
        if scores is not None and found.scores is not None:
            scores.append(found.scores)
        shown.advance(task, stop - start)
    joined = None if scores is None else np.concatenate(scores)
    return matches_table(batch.ids, np.concatenate(ids), np.cumsum(np.concatenate(counts)), joined)


def _together(subscriptions: pa.Table | None, messages: pa.Table | None) -> pa.Table:
    """The rejects of both tables, with the table's name in front."""
    import pyarrow as pa

    from nearcast.tables import REJECTS_SCHEMA

    named = []
    for name, table in (("subscriptions", subscriptions), ("messages", messages)):
        rows = table if table is not None else REJECTS_SCHEMA.empty_table()
        named.append(rows.add_column(0, "table", pa.array([name] * rows.num_rows, pa.string())))
    return pa.concat_tables(named)


def _summary(index: Index, n_messages: int, n_pairs: int, n_rejects: int, laps: dict[str, float]) -> dict[str, Any]:
    work = index.stats
    return {
        "method": index.method,
        "chosen": chosen_by(index),
        "subscriptions": len(index),
        "messages": n_messages,
        "pairs": n_pairs,
        "rejects": n_rejects,
        **laps,
        "us_per_message": 1e6 * laps["match_seconds"] / max(n_messages, 1),
        "bytes_per_subscription": index.nbytes / max(len(index), 1),
        "work": work._asdict(),
    }


def _write(answer: Answer, out: Path | None, rejects: Path | None) -> None:
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


def _for_machines(answer: Answer, out: Path | None) -> dict[str, Any]:
    if out is not None:
        return {**answer.summary, "out": str(out)}
    return {**answer.summary, "first_pairs": answer.matches.slice(0, SHOWN_PAIRS).to_pylist()}


def _for_people(answer: Answer, out: Path | None) -> Group:
    parts: list[Any] = []
    if out is None and answer.matches.num_rows:
        pairs = Table(
            *answer.matches.column_names,
            title=f"first of {answer.matches.num_rows:,} pairs",
            title_justify="left",
        )
        for pair in answer.matches.slice(0, SHOWN_PAIRS).to_pylist():
            pairs.add_row(*(_shown(value) for value in pair.values()))
        parts.append(pairs)
    lines = _lines(answer.summary)
    if out is not None:
        lines.append(("written to", str(out)))
    grid = Table.grid(padding=(0, 2))
    for name, value in lines:
        grid.add_row(name, value)
    return Group(*parts, grid)


def _shown(value: float | None) -> str:
    """Ids as they are; a score to six digits, nothing where there is none."""
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    work, per = summary["work"], max(summary["messages"], 1)
    return [
        ("method", _method_told(summary)),
        ("subscriptions", f"{summary['subscriptions']:,}"),
        ("messages", f"{summary['messages']:,}"),
        ("pairs", f"{summary['pairs']:,}"),
        ("bad rows", f"{summary['rejects']:,}"),
        ("read and build", f"{summary['build_seconds']:.2f} s"),
        ("match", f"{summary['us_per_message']:.2f} µs per message"),
        ("memory", f"{summary['bytes_per_subscription']:.0f} bytes per subscription"),
        ("work per message", f"{work['nodes'] / per:.1f} nodes, {work['candidates'] / per:.1f} candidates"),
    ]


def chosen_by(index: Index) -> str:
    """The method that does the work: the one that `auto` chose, or the index's own."""
    from nearcast.indexes.auto import Auto

    method = index.matcher.method
    return method.chosen.name if isinstance(method, Auto) else method.name


def _method_told(summary: dict[str, Any]) -> str:
    method, chosen = summary["method"], summary["chosen"]
    return str(method) if method == chosen else f"{method}, which chose {chosen}"


class _Clock:
    """Seconds of each step, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._last = now - self._last, now
