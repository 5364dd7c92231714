"""`nearcast pipeline stream`: match messages as they arrive, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from nearcast.cli.console import show
from nearcast.cli.options import Json, required
from nearcast.cli.pipeline.spark_console import Index, Master, OnSpark, grid, on_spark
from nearcast.errors import InvalidInput


def stream(  # noqa: PLR0913  the options of a command are its parameters
    index: Index,
    messages: Annotated[str, required(metavar="DIR", help="Folder where files of messages arrive.")],
    out: Annotated[Path, required(metavar="TABLE", help="Folder for the matches.")],
    checkpoint: Annotated[Path, required(metavar="DIR", help="Folder where the stream stores its progress.")],
    changes: Annotated[
        Path | None, Option(metavar="DIR", help="Change log: subscriptions added or removed meanwhile.")
    ] = None,
    once: Annotated[bool, Option("--once", help="Match the messages that are there, then end.")] = False,
    source: Annotated[
        Literal["files", "redis", "kafka"],
        Option(help="Source of the messages. For redis and kafka, --messages names the stream."),
    ] = "files",
    sink: Annotated[Literal["redis", "kafka"] | None, Option(help="Also send the matches there.")] = None,
    option: Annotated[
        list[str] | None,
        Option(
            metavar="NAME=VALUE", help="Option of the source or the sink, as in source.url=redis://host. Repeatable."
        ),
    ] = None,
    every: Annotated[float, Option(min=0, help="Minimum seconds between micro-batches.")] = 0.0,
    skip_lost_data: Annotated[
        bool,
        Option(
            "--skip-lost-data",
            help="Go on, with a reject, where a broker deleted messages before they were read. [default: stop]",
        ),
    ] = False,
    most_attempts: Annotated[
        int, Option(min=1, help="Set a file aside when reading it has killed so many workers.")
    ] = 3,
    max_files: Annotated[int, Option(min=1, help="Maximum number of files in a micro-batch.")] = 256,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Match messages as they arrive.

    Press Ctrl-C to end the stream. Start it again with the same checkpoint to continue: no match is lost or
    repeated.

    \b
    Example:
      nearcast pipeline stream --index index --messages incoming --out delivered --checkpoint checkpoint --once
    """
    from nearcast.ingest.pipeline.checks import check_stream
    from nearcast.ingest.pipeline.steps import require_inputs

    files = [messages] if source == "files" else []
    change_log = str(changes) if changes else None
    check_stream(index, messages if files else None, [str(out), str(checkpoint)], change_log)
    require_inputs([index, *files, *([change_log] if change_log else [])])
    options: dict[str, Any] = {"once": once, "source": source, "sink": sink, "every": every, "max_files": max_files}
    options |= {"fail_on_data_loss": not skip_lost_data, "most_attempts": most_attempts}
    options |= {"changes": change_log, **read_stream_options(option or [])}
    paths = [index, messages, str(out), str(checkpoint)]
    with on_spark(master, as_json) as spark:
        result = _run_with_progress(spark, paths, options)
    show(result, as_json, grid(result))


def read_stream_options(pairs: list[str]) -> dict[str, dict[str, str]]:
    """The options source.NAME=VALUE and sink.NAME=VALUE, as source_options and sink_options."""
    options: dict[str, dict[str, str]] = {"source_options": {}, "sink_options": {}}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        owner, dot, name = name.partition(".")
        if not (equals and dot and name) or f"{owner}_options" not in options:
            raise InvalidInput(f"--option takes source.name=value or sink.name=value, not '{pair}'")
        options[f"{owner}_options"][name] = value
    return options


def _run_with_progress(spark: OnSpark, paths: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Run the stream with a progress line that counts batches, messages and pairs."""
    from nearcast.spark.streaming.stream import run_stream

    task = spark.display.add_task("streaming", total=None)
    counts = {"batches": 0, "messages": 0, "pairs": 0}

    def on_batch(manifest: dict[str, Any]) -> None:
        counts["batches"] += 1
        for name in ("messages", "pairs"):
            counts[name] += manifest[name]
        text = ", ".join(f"{value:,} {name}" for name, value in counts.items())
        spark.display.update(task, description=f"streaming: {text}", completed=counts["batches"])

    with _until_interrupted() as until:
        return run_stream(spark.session, *paths, **options, on_batch=on_batch, until=until)


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """An event that the first Ctrl-C or kill sets, to end after this micro-batch. The second one interrupts at once."""
    interrupted = threading.Event()
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def on_signal(number: int, frame: object) -> None:
        interrupted.set()
        signal.signal(number, before[signal.Signals(number)])

    is_main = threading.current_thread() is threading.main_thread()
    for each in before if is_main else ():
        signal.signal(each, on_signal)
    try:
        yield interrupted
    finally:
        for each, handler in before.items() if is_main else ():
            signal.signal(each, handler)
