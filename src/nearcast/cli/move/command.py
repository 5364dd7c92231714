"""`nearcast move`: its options and help text. actions.py is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from nearcast.cli.options import AnalyserName, Extra, Json, Space, argument, read_extra, read_space


def move(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[Path, argument(metavar="SUBSCRIPTIONS", help="Table (.parquet, .csv, .jsonl).")],
    messages: Annotated[Path, argument(metavar="MESSAGES", help="Table with the columns time and expires.")],
    tracks: Annotated[Path, argument(metavar="TRACKS", help="Table: id of a subscription, time, and a point or box.")],
    out: Annotated[Path | None, Option(help="Write the changes to .parquet, .csv or .jsonl.")] = None,
    every: Annotated[float, Option(min=0.001, metavar="SECONDS", help="The length of a step.")] = 30.0,
    lifetime: Annotated[
        float | None,
        Option(min=0, metavar="SECONDS", help="How long messages without an expiry live. [default: for ever]"),
    ] = None,
    method: Annotated[str, Option(help="Method for moving subscriptions.")] = "auto",
    space: Space = None,
    analyser: AnalyserName = None,
    extra: Extra = None,
    as_json: Json = False,
) -> None:
    """Replay moving subscriptions: who gains and who loses which message, step by step.

    In each step the subscriptions move to their last place in it, its messages arrive, and messages that expire leave.
    A circle follows the points of its track; any region becomes the box of its track.

    \b
    Example:
      nearcast move subscriptions.csv messages.csv tracks.csv --out changes.parquet
      nearcast move subscriptions.csv messages.csv tracks.csv --every 60 --lifetime 3600 --json
    """
    from nearcast.cli.move import actions

    bounds, allowed = read_space(space), read_extra(extra)
    request = actions.Request(subscriptions, messages, tracks, every, lifetime, method, bounds, analyser, allowed)
    actions.run(request, out, as_json)
