"""How a stream is shown while it runs, and how Ctrl-C ends it: after the micro-batch under way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nearcast.cli.pipeline.spark_console import OnSpark


def shown_stream(spark: OnSpark, paths: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """`run_stream` with a line that counts batches and pairs."""
    from nearcast.spark.streaming.stream import run_stream

    task = spark.shown.add_task("streaming", total=None)
    counts = {"batches": 0, "messages": 0, "pairs": 0}

    def tell(manifest: dict[str, Any]) -> None:
        counts["batches"] += 1
        for name in ("messages", "pairs"):
            counts[name] += manifest[name]
        told = ", ".join(f"{value:,} {name}" for name, value in counts.items())
        spark.shown.update(task, description=f"streaming: {told}", completed=counts["batches"])

    with _until_interrupted() as until:
        return run_stream(spark.session, *paths, **options, on_batch=tell, until=until)


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    """Set by the first Ctrl-C or kill; the second one interrupts at once."""
    asked = threading.Event()
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}

    def ask(number: int, frame: object) -> None:
        asked.set()
        signal.signal(number, before[signal.Signals(number)])

    is_main = threading.current_thread() is threading.main_thread()
    for each in before if is_main else ():
        signal.signal(each, ask)
    try:
        yield asked
    finally:
        for each, handler in before.items() if is_main else ():
            signal.signal(each, handler)
