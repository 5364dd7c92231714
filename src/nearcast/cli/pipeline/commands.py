"""`nearcast pipeline ingest|vocabulary|build|match`, each one step of `nearcast.spark`; `run`, all steps; `size`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Option

from nearcast.cli.console import show, text_table
from nearcast.cli.options import AnalyserName, Json, Shards, Space, argument, given, place, read_space, required
from nearcast.cli.pipeline.spark_console import Force, Index, Master, grid, on_spark, run_one_step
from nearcast.errors import InvalidInput

_TITLES = ("step", "result", "seconds")
_Messages = Annotated[str, place(metavar="TABLE", help="Messages, Parquet: a path or a URL.")]


def ingest(  # noqa: PLR0913  the options of a command are its parameters
    raw: Annotated[
        list[str], argument(metavar="RAW...", help="CSV, JSONL (also .gz) or Parquet: files, folders, globs.")
    ],
    kind: Annotated[Literal["messages", "subscriptions"], required(metavar="KIND", help="messages or subscriptions.")],
    out: Annotated[str, place(metavar="TABLE", help="Folder for the clean table.")],
    rejects: Annotated[
        str | None, place(metavar="TABLE", help="Folder for bad rows, with reasons. [default: OUT-rejects]")
    ] = None,
    mapping: Annotated[
        str,
        Option("--map", metavar="NAME=COLUMN,...", help="Your column for each of ours, as in text=body,x=lon,y=lat."),
    ] = "",
    space: Space = None,
    analyser: AnalyserName = None,
    make_ids: Annotated[bool, Option("--make-ids", help="Number the rows instead of reading ids.")] = False,
    id_type: Annotated[Literal["int64", "string"], Option("--id-type", help="What the ids are.")] = "int64",
    delimiter: Annotated[str | None, Option(help="Delimiter of CSV. [default: by the file ending]")] = None,
    encoding: Annotated[str, Option(help="Encoding of CSV and JSONL.")] = "utf-8",
    header: Annotated[
        str | None, Option(metavar="COLUMN,...", help="Column names for CSV without a header line.")
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
    from nearcast.ingest.pipeline.pipeline_file import Raw
    from nearcast.spark.pipeline import ingest_stage

    rejects = rejects or f"{out.rstrip('/')}-rejects"
    options = {
        "make_ids": make_ids,
        "id_type": id_type,
        "delimiter": delimiter,
        "encoding": encoding,
        "header": tuple(header.split(",")) if header else None,
        "space": read_space(space),
        **given(analyser=analyser),
    }
    stage = ingest_stage(Raw(tuple(raw), read_mapping(mapping)), kind, out, rejects, options)
    run_one_step(stage, master, force, as_json)


def vocabulary(
    messages: _Messages,
    out: Annotated[str, place(metavar="VOCABULARY", help="File for the vocabulary: a path or a URL.")],
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Count in how many messages each token occurs.

    \b
    Example:
      nearcast pipeline vocabulary --messages messages --out vocabulary
    """
    from nearcast.spark.pipeline import vocabulary_stage

    run_one_step(vocabulary_stage(messages, out), master, force, as_json)


def build(  # noqa: PLR0913  the options of a command are its parameters
    subscriptions: Annotated[str, place(metavar="TABLE", help="Subscriptions, Parquet: a path or a URL.")],
    out: Annotated[str, place(metavar="INDEX", help="Folder for the index: a path or a URL.")],
    messages: Annotated[
        str | None, place(metavar="TABLE", help="A sample of the expected messages, to balance the shards.")
    ] = None,
    shards: Shards = None,
    method: Annotated[str, Option(help="Index method of each shard; see `nearcast methods`.")] = "auto",
    weights: Annotated[
        str | None,
        place(
            metavar="FILE",
            help="Weights of tokens for kind rank: a table (token, weight) or a vocabulary. [default: idf]",
        ),
    ] = None,
    space: Space = None,
    analyser: AnalyserName = None,
    keep_hours: Annotated[
        float, Option(min=0, help="Remove versions of the index that were replaced so many hours ago.")
    ] = 24.0,
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
    from nearcast.spark.pipeline import build_stage

    options = {"shards": shards, "method": method, "space": read_space(space), "weights": weights}
    options |= given(analyser=analyser)
    stage = build_stage(subscriptions, messages, out, options, keep_hours)
    run_one_step(stage, master, force, as_json)


def match(
    index: Index,
    messages: _Messages,
    out: Annotated[str, place(metavar="TABLE", help="Folder for the matches.")],
    layout: Annotated[
        Literal["auto", "replicated", "sharded"],
        Option(
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
    from nearcast.spark.pipeline import match_stage

    run_one_step(match_stage(index, messages, out, layout), master, force, as_json)


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


def run(
    pipeline: Annotated[
        Path | None, argument(metavar="[PIPELINE.toml]", help="The pipeline to run. [default: that of the demo]")
    ] = None,
    out: Annotated[
        str | None, place(metavar="DIR", help="Folder for all outputs. [default: the file's, or pipeline-output]")
    ] = None,
    master: Master = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Run a whole pipeline: ingest, vocabulary, build, match, stream, report.

    Steps whose input has not changed are skipped. docs/how-to/run-the-pipeline.md describes the format of the file.
    Without a file, the command uses the sample that comes with nearcast.

    \b
    Example:
      nearcast pipeline run
      nearcast pipeline run traffic.toml --master spark://host:7077
    """
    from nearcast.demo.pipeline import sample_pipeline
    from nearcast.ingest.output_folder import mounted_path
    from nearcast.ingest.pipeline.pipeline_file import read_pipeline
    from nearcast.ingest.reports.page import html_table
    from nearcast.ingest.reports.table_report import write_report
    from nearcast.spark.pipeline import read_statistics, run_pipeline

    folder = None if out is None else Path(mounted_path(out))
    chosen = read_pipeline(pipeline, folder) if pipeline else sample_pipeline(folder or Path("pipeline-output"))
    with on_spark(master, as_json) as spark:
        steps = run_pipeline(lambda: spark.session, chosen, force, spark.working)
    report, rows = chosen.path("report.html"), [_row(name, result) for name, result in steps.items()]
    write_report(report, read_statistics(chosen), title="nearcast pipeline", more=[html_table(_TITLES, rows)])
    table = text_table(_TITLES, rows, caption=f"written to {chosen.out}: tables, index and report.html")
    table.columns[2].justify = "right"
    show({"out": str(chosen.out), "steps": steps, "report": report}, as_json, table)


def _row(name: str, result: dict[str, Any]) -> tuple[str, str, str]:
    """Name, counts and seconds of a step."""
    counts = [(key, value) for key, value in result.items() if isinstance(value, int) and not isinstance(value, bool)]
    seconds = f"{result['seconds']:.1f}" if "seconds" in result else ""
    in_words = ", ".join(f"{value:,} {key.replace('_', ' ')}" for key, value in counts)
    return name, in_words, "up to date" if result.get("up_to_date") else seconds


def size(
    subscriptions: Annotated[float, required("--subscriptions", "-n", help="Number of subscriptions.")],
    rate: Annotated[float, required("--rate", "-r", help="Messages per second.")],
    matches: Annotated[
        float | None, Option(help="Matches per message. [default: 3.4 for each million subscriptions]")
    ] = None,
    interval: Annotated[float, Option(help="Seconds between micro-batches.")] = 1.0,
    cores: Annotated[int, Option(min=1, help="Cores of a host.")] = 16,
    memory: Annotated[float, Option(metavar="GB", help="Memory of a host.")] = 64.0,
    as_json: Json = False,
) -> None:
    """Compute how large a cluster must be, by the formula in docs/how-to/size-a-cluster.md.

    \b
    Example:
      nearcast pipeline size --subscriptions 1e9 --rate 50000
    """
    from nearcast.sharding.planning.capacity import MATCHES_PER_MILLION, Load, capacity

    expected = MATCHES_PER_MILLION * subscriptions / 1e6 if matches is None else matches
    load = Load(subscriptions, rate, expected, interval, cores, memory * 1e9)
    sizes = {**load._asdict(), **capacity(load)._asdict()}
    show(sizes, as_json, grid(sizes))
