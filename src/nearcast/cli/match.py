"""`nearcast match`: match a table of messages with a table of subscriptions or a saved index."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from nearcast.cli.console import progress, working
from nearcast.cli.match_output import Answer, require_table_file, show_answer, write_tables
from nearcast.cli.options import Json, Space, read_space
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.progress import Progress

    from nearcast.engine.index import Index
    from nearcast.model import MessageBatch
    from nearcast.tables import OnBad

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
    threads: Annotated[int, typer.Option(min=1, help="Number of threads.")] = 1,
    on_bad: Annotated[
        Literal["raise", "skip"] | None,
        typer.Option(help="Bad rows: stop at the first, or skip them. [default: raise; with --rejects: skip]"),
    ] = None,
    rejects: Annotated[
        Path | None, typer.Option(help="Write the bad rows and the reasons to .parquet, .csv or .jsonl.")
    ] = None,
    space: Space = None,
    option: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="An option of the method. Repeatable.")
    ] = None,
    weights: Annotated[
        Path | None,
        typer.Option(help="Weights of tokens for kind rank: a table (token, weight) or a vocabulary. [default: idf]"),
    ] = None,
    save_index: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save the index. Give DIR as SUBSCRIPTIONS next time."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Match messages with subscriptions.

    Without --out, the command shows the first 20 pairs.

    \b
    Example:
      nearcast match subscriptions.parquet messages.csv --out matches.parquet --threads 2
      nearcast match subscriptions.parquet monday.csv --save-index index --out monday.parquet
      nearcast match index tuesday.csv --out tuesday.parquet
    """
    skip = on_bad == "skip" or (on_bad is None and rejects is not None)
    options = _read_options(option or [])
    request = Request(subscriptions, method, read_space(space), options, "skip" if skip else "raise", weights)
    for file in (out, rejects):
        require_table_file(file)
    with progress(quiet=as_json) as shown:
        answer = _answer(request, messages, threads, save_index, shown)
    write_tables(answer, out, rejects)
    show_answer(answer, out, as_json)


def _read_options(pairs: list[str]) -> dict[str, Any]:
    from nearcast.matching.variant import option_of

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
    rejects = _concat_rejects(subscription_rejects, index.rejects)
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
    """Whether this is a folder with a saved index. Without a manifest it still is one: `open_index` then says so."""
    return path.is_dir() and ((path / "manifest.json").exists() or any(path.glob("arrays-*")))


def _matches(index: Index, batch: MessageBatch, threads: int, shown: Progress) -> pa.Table:
    """The matches as from `index.match`, but found in chunks, so that the progress bar moves."""
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


def _concat_rejects(subscriptions: pa.Table | None, messages: pa.Table | None) -> pa.Table:
    """The rejects of both tables, with the name of the table as the first column."""
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


def chosen_by(index: Index) -> str:
    """The method that does the work: the one that `auto` chose, or the method of the index."""
    from nearcast.indexes.auto import Auto

    method = index.matcher.method
    return method.chosen.name if isinstance(method, Auto) else method.name


class _Clock:
    """Measures the seconds of each step, by name."""

    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._last = now - self._last, now
