"""`nearcast pipeline`: from raw files to matches, on Spark. Thin: each command is one call of `nearcast.spark`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from nearcast.cli.console import show
from nearcast.cli.pipeline.spark_console import Force, Json, Master, grid, on_spark, one_step
from nearcast.errors import InvalidInput

app = typer.Typer(
    help="From raw files to matches, on Spark: one machine or a cluster.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

_Index = Annotated[Path, typer.Option(metavar="INDEX", help="Made by `pipeline build`.", show_default=False)]
_Space = Annotated[
    str | None,
    typer.Option(metavar="XMIN,YMIN,XMAX,YMAX", help="Coordinates are planar, in these bounds. [default: lon/lat]"),
]
_Messages = Annotated[Path, typer.Option(metavar="TABLE", help="Messages, Parquet.", show_default=False)]


@app.command()
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
        str, typer.Option("--map", metavar="NAME=COLUMN,...", help="Our columns by yours, as in text=body,x=lon,y=lat.")
    ] = "",
    make_ids: Annotated[bool, typer.Option("--make-ids", help="Number the rows instead of reading ids.")] = False,
    delimiter: Annotated[str | None, typer.Option(help="Of CSV. [default: by the ending]")] = None,
    encoding: Annotated[str, typer.Option(help="Of CSV and JSONL.")] = "utf-8",
    header: Annotated[
        str | None, typer.Option(metavar="COLUMN,...", help="Names for CSV without a line of names.")
    ] = None,
    space: _Space = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Clean raw files into a messages or a subscriptions table.

    Every row is accepted or rejected with a reason; nothing is dropped.

    \b
    Example:
      nearcast pipeline ingest 'raw/*.csv.gz' --kind messages --map id=id,text=body,x=lon,y=lat --out messages
    """
    from nearcast.cli.match import read_space
    from nearcast.spark.pipeline.stages import Raw, ingest_stage

    beside = rejects or out.with_name(f"{out.name}-rejects")
    options = {
        "make_ids": make_ids,
        "delimiter": delimiter,
        "encoding": encoding,
        "header": tuple(header.split(",")) if header else None,
        "space": read_space(space),
    }
    stage = ingest_stage(Raw(tuple(raw), read_mapping(mapping)), kind, str(out), str(beside), options)
    one_step(stage, master, force, as_json)


@app.command()
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

    one_step(vocabulary_stage(str(messages), str(out)), master, force, as_json)


@app.command()
def build(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[Path, typer.Option(metavar="TABLE", help="Subscriptions, Parquet.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="INDEX", help="Folder for the index.", show_default=False)],
    messages: Annotated[
        Path | None, typer.Option(metavar="TABLE", help="A sample of what will come, to balance the shards by.")
    ] = None,
    shards: Annotated[
        int | None, typer.Option(min=1, help="Parts to divide the subscriptions into. [default: by size and cores]")
    ] = None,
    method: Annotated[str, typer.Option(help="Index method of each shard; see `nearcast methods`.")] = "auto",
    weights: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What tokens weigh for kind rank: a table (token, weight) or a vocabulary. [default: idf]",
        ),
    ] = None,
    space: _Space = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Build an index in shards.

    The new version is there whole or not at all; who reads the index meanwhile reads the old one.

    \b
    Example:
      nearcast pipeline build --subscriptions subscriptions --messages messages --shards 8 --out index
    """
    from nearcast.cli.match import read_space
    from nearcast.spark.pipeline.stages import build_stage

    options = {"shards": shards, "method": method, "space": read_space(space)}
    options["weights"] = str(weights) if weights else None
    stage = build_stage(str(subscriptions), str(messages) if messages else None, str(out), options)
    one_step(stage, master, force, as_json)


@app.command()
def match(
    index: _Index,
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

    one_step(match_stage(str(index), str(messages), str(out), layout), master, force, as_json)


@app.command()
def stream(  # noqa: PLR0913  the options of a command are its parameters
    index: _Index,
    messages: Annotated[
        str, typer.Option(metavar="DIR", help="Folder where files of messages arrive.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(metavar="TABLE", help="Folder for the matches.", show_default=False)],
    checkpoint: Annotated[
        Path, typer.Option(metavar="DIR", help="Where the stream remembers how far it is.", show_default=False)
    ],
    changes: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Change log: subscriptions that come and go meanwhile.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Take what is there and end.")] = False,
    source: Annotated[
        Literal["files", "redis", "kafka"], typer.Option(help="Where messages come from; --messages names the stream.")
    ] = "files",
    sink: Annotated[
        Literal["redis", "kafka"] | None, typer.Option(help="Where matches go too, beside the table.")
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="Of source or sink, as in source.url=redis://host; may be repeated."),
    ] = None,
    every: Annotated[float, typer.Option(min=0, help="Seconds between micro-batches, at least.")] = 0.0,
    max_files: Annotated[int, typer.Option(min=1, help="Files that a micro-batch takes.")] = 256,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Match messages as they arrive.

    Ctrl-C ends it. Started again with the same checkpoint it goes on where it was: no pair is lost and none comes
    twice.

    \b
    Example:
      nearcast pipeline stream --index index --messages incoming --out delivered --checkpoint checkpoint --once
    """
    from nearcast.cli.pipeline.stream import shown_stream
    from nearcast.spark.pipeline.steps import require_inputs

    files = [messages] if source == "files" else []
    require_inputs([str(index), *files, *([str(changes)] if changes else [])])
    given: dict[str, Any] = {"changes": str(changes) if changes else None, "once": once, "source": source, "sink": sink}
    given |= {"every": every, "max_files": max_files, **read_stream_options(option or [])}
    paths = [str(index), messages, str(out), str(checkpoint)]
    with on_spark(master, as_json) as spark:
        result = shown_stream(spark, paths, given)
    show(result, as_json, grid(result))


def read_stream_options(pairs: list[str]) -> dict[str, dict[str, str]]:
    """source.NAME=VALUE and sink.NAME=VALUE, by whom they are for."""
    options: dict[str, dict[str, str]] = {"source_options": {}, "sink_options": {}}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        whose, dot, name = name.partition(".")
        if not (equals and dot and name) or f"{whose}_options" not in options:
            raise InvalidInput(f"--option takes source.name=value or sink.name=value, not '{pair}'")
        options[f"{whose}_options"][name] = value
    return options


@app.command()
def run(
    pipeline: Annotated[
        Path | None,
        typer.Argument(metavar="[PIPELINE.toml]", help="What to run. [default: the demo's]", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Folder for all that is made. [default: the file's, or pipeline-output]"),
    ] = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a whole pipeline: ingest, vocabulary, build, match, stream, report.

    A step whose input has not changed is not done again. The file's format is in docs/pipeline.md; without
    one, the sample that comes with nearcast is used.

    \b
    Example:
      nearcast pipeline run
      nearcast pipeline run traffic.toml --master spark://host:7077
    """
    from nearcast.cli.pipeline.run import run_shown
    from nearcast.demo.pipeline import sample_pipeline
    from nearcast.spark.pipeline.pipeline_file import read_pipeline

    if pipeline is not None:
        run_shown(read_pipeline(pipeline, out), master, force, as_json)
    else:
        run_shown(sample_pipeline(out or Path("pipeline-output")), master, force, as_json)


def read_mapping(text: str) -> dict[str, str]:
    """`ours=theirs,...` as a dict."""
    columns: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        ours, equals, theirs = (part.strip() for part in pair.partition("="))
        if not (ours and equals and theirs):
            raise InvalidInput(f"--map takes name=column pairs, as in text=body,x=lon,y=lat, not '{pair}'")
        if ours in columns:
            raise InvalidInput(f"--map names '{ours}' twice")
        columns[ours] = theirs
    return columns


@app.command()
def size(
    subscriptions: Annotated[float, typer.Option("--subscriptions", "-n", help="How many.", show_default=False)],
    rate: Annotated[float, typer.Option("--rate", "-r", help="Messages per second.", show_default=False)],
    matches: Annotated[
        float | None, typer.Option(help="Matches of a message. [default: 3.4 for each million subscriptions]")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between micro-batches.")] = 1.0,
    cores: Annotated[int, typer.Option(min=1, help="Of a host.")] = 16,
    memory: Annotated[float, typer.Option(metavar="GB", help="Of a host.")] = 64.0,
    as_json: Json = False,
) -> None:
    """Say how large a cluster must be, by the formula in docs/pipeline.md.

    \b
    Example:
      nearcast pipeline size --subscriptions 1e9 --rate 50000
    """
    from nearcast.sharding.planning.capacity import MATCHES_PER_MILLION, Load, capacity

    expected = MATCHES_PER_MILLION * subscriptions / 1e6 if matches is None else matches
    load = Load(subscriptions, rate, expected, interval, cores, memory * 1e9)
    told = {**load._asdict(), **capacity(load)._asdict()}
    show(told, as_json, grid(told))
