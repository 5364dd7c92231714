"""`nearcast pipeline ingest|vocabulary|build|match`: each command runs one step of `nearcast.spark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from nearcast.cli.options import Json, Space, read_space
from nearcast.cli.pipeline.spark_console import Force, Index, Master, run_one_step
from nearcast.errors import InvalidInput

_Messages = Annotated[Path, typer.Option(metavar="TABLE", help="Messages, Parquet.", show_default=False)]


def ingest(  # noqa: PLR0913  the options of a command are its parameters
    raw: Annotated[
        list[str],
        typer.Argument(
            metavar="RAW...", help="CSV, JSONL (also .gz) or Parquet: files, folders, globs.", show_default=False
        ),
    ],
    kind: Annotated[
        Literal["messages", "subscriptions"],
        typer.Option(metavar="KIND", help="messages or subscriptions.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="TABLE", help="Folder for the clean table.", show_default=False)],
    rejects: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="Folder for bad rows, with reasons. [default: OUT-rejects]")
    ] = None,
    mapping: Annotated[
        str,
        typer.Option(
            "--map", metavar="NAME=COLUMN,...", help="Your column for each of ours, as in text=body,x=lon,y=lat."
        ),
    ] = "",
    space: Space = None,
    make_ids: Annotated[bool, typer.Option("--make-ids", help="Number the rows instead of reading ids.")] = False,
    delimiter: Annotated[str | None, typer.Option(help="Delimiter of CSV. [default: by the file ending]")] = None,
    encoding: Annotated[str, typer.Option(help="Encoding of CSV and JSONL.")] = "utf-8",
    header: Annotated[
        str | None, typer.Option(metavar="COLUMN,...", help="Column names for CSV without a header line.")
    ] = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Clean raw files into a messages or a subscriptions table.

    Every row is accepted, or rejected with a reason.

    \b
    Example:
      nearcast pipeline ingest 'raw/*.csv.gz' --kind messages --map id=id,text=body,x=lon,y=lat --out messages
    """
    from nearcast.spark.pipeline.stages import Raw, ingest_stage

    rejects = rejects or out.with_name(f"{out.name}-rejects")
    options = {
        "make_ids": make_ids,
        "delimiter": delimiter,
        "encoding": encoding,
        "header": tuple(header.split(",")) if header else None,
        "space": read_space(space),
    }
    stage = ingest_stage(Raw(tuple(raw), read_mapping(mapping)), kind, str(out), str(rejects), options)
    run_one_step(stage, master, force, as_json)


def vocabulary(
    messages: _Messages,
    out: Annotated[Path, typer.Option(metavar="VOCABULARY", help="File for the vocabulary.", show_default=False)],
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Count in how many messages each token occurs.

    \b
    Example:
      nearcast pipeline vocabulary --messages messages --out vocabulary
    """
    from nearcast.spark.pipeline.stages import vocabulary_stage

    run_one_step(vocabulary_stage(str(messages), str(out)), master, force, as_json)


def build(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[Path, typer.Option(metavar="TABLE", help="Subscriptions, Parquet.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="INDEX", help="Folder for the index.", show_default=False)],
    messages: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="A sample of the expected messages, to balance the shards.")
    ] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="Number of shards. [default: by size and cores]")] = None,
    method: Annotated[str, typer.Option(help="Index method of each shard; see `nearcast methods`.")] = "auto",
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Weights of tokens for kind rank: a table (token, weight) or a vocabulary. [default: idf]",
        ),
    ] = None,
    space: Space = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Build a sharded index.

    Readers see the old index until the new one is complete.

    \b
    Example:
      nearcast pipeline build --subscriptions subscriptions --messages messages --shards 8 --out index
    """
    from nearcast.spark.pipeline.stages import build_stage

    options = {"shards": shards, "method": method, "space": read_space(space)}
    options["weights"] = str(weights) if weights else None
    stage = build_stage(str(subscriptions), str(messages) if messages else None, str(out), options)
    run_one_step(stage, master, force, as_json)


def match(
    index: Index,
    messages: _Messages,
    out: Annotated[Path, typer.Option(metavar="TABLE", help="Folder for the matches.", show_default=False)],
    layout: Annotated[
        Literal["auto", "replicated", "sharded"],
        typer.Option(
            metavar="LAYOUT",
            help="replicated: every worker maps the whole index; sharded: each shard has its own tasks; auto: by size.",
        ),
    ] = "auto",
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Match a table of messages.

    \b
    Example:
      nearcast pipeline match --index index --messages messages --out matches
    """
    from nearcast.spark.pipeline.stages import match_stage

    run_one_step(match_stage(str(index), str(messages), str(out), layout), master, force, as_json)


def read_mapping(text: str) -> dict[str, str]:
    """The pairs `ours=theirs,...` as a dict."""
    columns: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not (ours and equals and theirs):
            raise InvalidInput(f"--map takes name=column pairs, as in text=body,x=lon,y=lat, not '{pair}'")
        if ours in columns:
            raise InvalidInput(f"--map names '{ours}' twice")
        columns[ours] = theirs
    return columns
