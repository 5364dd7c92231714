"""`nearcast top`: its options and help text. actions.py is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from nearcast.cli.options import AnalyserName, Extra, Json, Space, argument, given, read_extra, read_space


def top(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[Path, argument(metavar="SUBSCRIPTIONS", help="Table (.parquet, .csv, .jsonl).")],
    messages: Annotated[
        Path, argument(metavar="MESSAGES", help="Table (.parquet, .csv, .jsonl), in order of arrival.")
    ],
    window: Annotated[
        str | None,
        Option(
            metavar="N|DURATION", help="A number of messages, or a period such as 90min. [default: the column window]"
        ),
    ] = None,
    out: Annotated[Path | None, Option(help="Write the changes to .parquet, .csv or .jsonl.")] = None,
    method: Annotated[str, Option(help="Method for kind top.")] = "auto",
    space: Space = None,
    analyser: AnalyserName = None,
    max_dist: Annotated[
        float | None, Option(help="The distance at which place counts 0. [default: 20,015 km; the diagonal of a plane]")
    ] = None,
    weights: Annotated[
        Path | None, Option(help="Weights of tokens: a table (token, weight) or a vocabulary. [default: idf]")
    ] = None,
    option: Annotated[
        list[str] | None, Option(metavar="KEY=VALUE", help="An option of the method. Repeatable.")
    ] = None,
    extra: Extra = None,
    as_json: Json = False,
) -> None:
    """Keep the best k messages of a sliding window for each subscription.

    SUBSCRIPTIONS has the columns id, tokens, x, y (or lon, lat) and, if you like, k and alpha. The command prints some
    of the lists as they are at the end.

    \b
    Example:
      nearcast top subscriptions.parquet messages.parquet --window 100000 --out changes.parquet
      nearcast top subscriptions.csv messages.csv --window 90min
    """
    from nearcast.cli.match_actions import read_options
    from nearcast.cli.top import actions

    options = read_options(option or []) | given(max_dist=max_dist, analyser=analyser, extra=read_extra(extra))
    request = actions.Request(subscriptions, messages, window, method, read_space(space), weights, options)
    actions.run(request, out, as_json)
