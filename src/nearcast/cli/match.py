"""`nearcast match`: its options and help text. match_actions.py is imported when the command runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from typer import Option

from nearcast.cli.options import AnalyserName, Extra, Json, Keep, Now, Space, argument, read_extra, read_space


def match(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[
        Path, argument(metavar="SUBSCRIPTIONS", help="Table (.parquet, .csv, .jsonl) or index folder.")
    ],
    messages: Annotated[Path, argument(metavar="MESSAGES", help="Table (.parquet, .csv, .jsonl).")],
    method: Annotated[str | None, Option(help="Index method; see `nearcast methods`. [default: auto]")] = None,
    out: Annotated[Path | None, Option(help="Write the matches to .parquet, .csv or .jsonl.")] = None,
    threads: Annotated[int, Option(min=1, help="Number of threads.")] = 1,
    on_bad: Annotated[
        Literal["raise", "skip"] | None,
        Option(help="Bad rows: stop at the first, or skip them. [default: raise; with --rejects: skip]"),
    ] = None,
    rejects: Annotated[
        Path | None, Option(help="Write the bad rows and the reasons to .parquet, .csv or .jsonl.")
    ] = None,
    space: Space = None,
    analyser: AnalyserName = None,
    option: Annotated[
        list[str] | None, Option(metavar="KEY=VALUE", help="An option of the method. Repeatable.")
    ] = None,
    weights: Annotated[
        Path | None,
        Option(help="Weights of tokens for kind rank: a table (token, weight) or a vocabulary. [default: idf]"),
    ] = None,
    keep: Keep = None,
    extra: Extra = None,
    now: Now = None,
    make_ids: Annotated[
        bool, Option("--make-ids", help="Number the rows, from 0, of subscriptions without a column id.")
    ] = False,
    save_index: Annotated[
        Path | None, Option(metavar="DIR", help="Save the index. Give DIR as SUBSCRIPTIONS next time.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Match messages with subscriptions.

    The command shows some of the matches; without --out, the first 20.

    \b
    Example:
      nearcast match subscriptions.parquet messages.csv --out matches.parquet --threads 2
      nearcast match subscriptions.csv messages.csv --keep text --keep distance_km --out matches.csv
      nearcast match subscriptions.parquet monday.csv --save-index index --out monday.parquet
      nearcast match index tuesday.csv --out tuesday.parquet
    """
    from nearcast.cli import match_actions
    from nearcast.tables.moments import read_moment

    where = (subscriptions, method, read_space(space), match_actions.read_options(option or []))
    how = on_bad or ("raise" if rejects is None else "skip")
    given = (keep or [], read_extra(extra), None if now is None else read_moment(now))
    request = match_actions.Request(*where, how, weights, make_ids, analyser, *given)
    match_actions.run(request, messages, threads, save_index, out, rejects, as_json)
