"""The commands of `nearcast bench`: options and help texts. actions.py is imported when a command runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

from typer import Option

from nearcast.bench.toml_files import shipped_names
from nearcast.cli.generate import WORKLOADS
from nearcast.cli.options import Json, Shards, Source, argument, given, read_counts, read_names
from nearcast.cli.pipeline.spark_console import Master, on_spark
from nearcast.errors import InvalidInput

_PAPERS = ", ".join(shipped_names("papers"))
_PARTS = ("join", "library", "overheads", "memory")
_Baseline = Annotated[
    str | None, Option(metavar="METHOD", help="Ratios against this method. [default: the best other]")
]


def run(  # noqa: PLR0913  the options of a command are its parameters
    sweep: Annotated[
        str | None, Option(help="A sweep of `nearcast bench sweeps`, or a .toml file. [default: quick]")
    ] = None,
    workload: Annotated[str | None, Option(help=f"One workload instead of a sweep: {WORKLOADS}.")] = None,
    methods: Annotated[
        str | None,
        Option(
            metavar="NAME,...",
            help='Methods, with or without options: "brute,pyramid crowded=32". '
            "[default: the sweep's, or all but auto]",
        ),
    ] = None,
    subscriptions: Annotated[
        int | None, Option("--subscriptions", "-n", help="With --workload: number of subscriptions.")
    ] = None,
    messages: Annotated[
        int | None, Option("--messages", "-m", help="With --workload: number of messages in each group.")
    ] = None,
    seed: Annotated[int | None, Option(help="With --workload: seed of the random draws.")] = None,
    source: Source = None,
    rounds: Annotated[int | None, Option(help="Number of rounds; the median counts.")] = None,
    budget: Annotated[
        float | None, Option(help="CPU seconds for each method and group; slow methods get fewer messages.")
    ] = None,
    tables: Annotated[
        bool | None, Option("--tables/--no-tables", help="Also measure the whole table API and match_one.")
    ] = None,
    threads: Annotated[
        str | None, Option(metavar="N,...", help="Also measure the throughput with these numbers of threads.")
    ] = None,
    whole: Annotated[
        bool | None, Option("--whole/--no-whole", help="Also measure the whole match beside the method's part of it.")
    ] = None,
    engine: Annotated[int | None, Option(metavar="N", help="Also measure N calls of an engine.")] = None,
    scale: Annotated[float, Option(help="Factor on all sizes.")] = 1.0,
    baseline: _Baseline = None,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="DIR", help="Folder for result.json and picture.png.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a sweep or one workload.

    All methods run in one process, in turns, on the same rows and messages. If two methods find different
    pairs, the run ends with the first difference.

    \b
    Example:
      nearcast bench run --sweep quick --out results
      nearcast bench run --workload B -n 1000000 --methods "pyramid,pyramid crowded=32" --threads 1,2
    """
    from nearcast.cli.bench import actions

    counts = None if threads is None else read_counts("--threads", threads)
    settings = given(rounds=rounds, budget_s=budget, tables=tables, threads=counts, whole=whole, engine=engine)
    chosen = actions.choose_sweep(sweep, workload, given(subscriptions=subscriptions, messages=messages, seed=seed))
    chosen = actions.with_options(chosen, methods, settings)
    actions.run(chosen, scale, source, baseline, out, as_json)


def report(
    result: Annotated[Path, argument(metavar="RESULT", help="A result.json of `bench run --out`.")],
    picture: Annotated[Path | None, Option(help="Draw the result to this .png, .svg or .pdf.")] = None,
    markdown: Annotated[bool, Option("--markdown", help="Print the tables as Markdown.")] = False,
    baseline: _Baseline = None,
    as_json: Json = False,
) -> None:
    """Show a stored result, and draw it.

    \b
    Example:
      nearcast bench report results/result.json --picture results/picture.svg
    """
    from nearcast.cli.bench import actions

    actions.report(result, picture, markdown, baseline, as_json)


def costs(
    results: Annotated[list[Path], argument(metavar="RESULT...", help="Files of `bench run --out`.")],
    as_json: Json = False,
) -> None:
    """Fit the cost figures that `auto` compares methods by.

    The column estimate shows the smallest and the largest fitted time as a share of the measured time.

    \b
    Example:
      nearcast bench run --sweep grid --out results
      nearcast bench costs results/result.json
    """
    from nearcast.cli.bench import actions

    actions.costs(results, as_json)


def sweeps(as_json: Json = False) -> None:
    """List the sweeps that come with nearcast.

    \b
    Example:
      nearcast bench sweeps
    """
    from nearcast.cli.bench import actions

    actions.sweeps(as_json)


def paper(  # noqa: PLR0913  the options of a command are its parameters
    paper: Annotated[str, argument(metavar="PAPER", help=f"{_PAPERS}, or a .toml file.")],
    figures: Annotated[
        str | None, Option(metavar="ID,...", help="Figures to run, as in 7,8,table-1. [default: all]")
    ] = None,
    scale: Annotated[float, Option(help="Factor on all sizes.")] = 1.0,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="DIR", help="Folder for result.json, page.md and pictures.")
    ] = None,
    page: Annotated[
        Path | None,
        Option(metavar="FILE", help="With --out: also insert the figures into this page, between its marks."),
    ] = None,
    again: Annotated[
        Path | None, Option("--from", metavar="RESULT", help="Measure nothing; use this result.json.")
    ] = None,
    data: Annotated[
        Path | None,
        Option(
            metavar="DIR",
            help="Folder of the real data that skype and ap-plus-tree use. Without the files the shipped sample is "
            "used. [default: the folder that NEARCAST_DATA names]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the experiments of a paper, and check its claims.

    Methods run side by side as in `nearcast bench run`. A note names the methods that nearcast does not have.
    All experiments of rt-tree take less than 15 minutes on two cores, those of skype and of ap-plus-tree 10 minutes.

    \b
    Example:
      nearcast bench paper rt-tree --figures 9,table-1 --scale 0.1 --out results
      nearcast bench paper rt-tree --out results --page results/rt-tree.md
      nearcast bench paper skype --scale 0.05 --data real-data --out results
    """
    from nearcast.cli.bench import actions

    if page is not None and out is None:
        raise InvalidInput("--page needs --out, the folder of its pictures")
    actions.paper(paper, figures, scale, out, page, again, data, as_json)


def spark(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[str, Option(help=f"The workload: {WORKLOADS}.")] = "B",
    sizes: Annotated[str, Option(metavar="N,...", help="Sizes of the join: N subscriptions and N messages.")] = "20000",
    subscriptions: Annotated[
        int, Option("--subscriptions", "-n", metavar="N", min=1, help="Against the library: number of subscriptions.")
    ] = 50_000,
    messages: Annotated[
        int, Option("--messages", "-m", metavar="N", min=1, help="Against the library: number of messages.")
    ] = 100_000,
    shards: Shards = None,
    parts: Annotated[
        str, Option(metavar="PART,...", help="What to measure; also frames, the CPU of a message through DataFrames.")
    ] = ",".join(_PARTS),
    rounds: Annotated[int, Option(min=1, help="Number of rounds; the median counts.")] = 1,
    folder: Annotated[
        Path | None, Option(metavar="DIR", help="Folder for the data. [default: a temporary folder]")
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Also write the figures to this file, as JSON.")
    ] = None,
    master: Master = None,
    as_json: Json = False,
) -> None:
    """Measure the pipeline on Spark.

    Compares the time of a plain Spark SQL join with the time to build and match, and the messages per second and
    core of the library with those of the pipeline. Also measures the milliseconds of an empty task and of a
    micro-batch, and the memory of one and of two workers. The start of Spark and a warm-up are not timed.

    \b
    Example:
      nearcast bench spark --sizes 100000,500000 -n 1000000 -m 5000000 --out spark.json
    """
    from nearcast.bench.workloads.workload import find_workload
    from nearcast.cli.bench import actions

    wanted = read_names(parts)
    if not wanted or set(wanted) - {*_PARTS, "frames"}:
        raise InvalidInput(f"--parts takes some of {', '.join(_PARTS)}, frames, not '{parts}'")
    chosen, joins = find_workload(workload), read_counts("--sizes", sizes)
    with tempfile.TemporaryDirectory(prefix="nearcast-bench-") as temporary, on_spark(master, as_json) as console:
        from nearcast.bench.spark_runs.benchmark import SparkBenchmark

        place = folder or Path(temporary)
        benchmark = SparkBenchmark(console.session, console.working, chosen, place, shards, rounds)
        result = benchmark.measure(wanted, joins, (subscriptions, messages))
    actions.show_spark(result, out, as_json)


def top(  # noqa: PLR0913  the options of a command are its parameters
    source: Annotated[
        Path | None, Option(metavar="FILE", help="Real messages instead of random ones; places are lon/lat.")
    ] = None,
    methods: Annotated[
        str, Option(metavar="NAME,...", help='Methods of kind `top`, with or without options: "skype prune=ipt".')
    ] = "norm-lists,skype,skype prune=ipt,ciq",
    subscriptions: Annotated[
        int, Option("--subscriptions", "-n", metavar="N", min=1, help="Number of subscriptions.")
    ] = 100_000,
    window: Annotated[
        int, Option("--window", "-w", metavar="N", min=1, help="Messages in the window, which is full.")
    ] = 100_000,
    messages: Annotated[int, Option("--messages", "-m", metavar="N", min=100, help="Messages that arrive.")] = 1_000,
    k: Annotated[int, Option("-k", min=1, help="Messages in each best list.")] = 20,
    budget: Annotated[float, Option(help="CPU seconds for each measurement; slow methods get fewer messages.")] = 20.0,
    seed: Annotated[int, Option(help="Seed of the random draws.")] = 1,
    filled: Annotated[
        Path | None,
        Option(metavar="DIR", help="Keep the full windows here for the next run: filling takes most of the time."),
    ] = None,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Also write the figures to this file, as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure methods of kind `top`.

    Arrivals: the time to find the subscriptions that a message concerns, over the same buffers. Streams: the time of
    a message with everything, each method with its own buffers. If two methods give different changes, the run ends
    with the first difference. Parts: where the time of a message goes, timed around calls. Without --source, words
    and places are drawn at random.

    \b
    Example:
      nearcast bench top -n 100000 -w 100000 --methods "norm-lists,skype" --out top.json
      nearcast bench top --source messages.csv -n 1000000 -w 200000 --budget 60 --filled windows
    """
    from nearcast.bench.top_runs.workload import TopSizes
    from nearcast.cli.bench import top_action

    sizes = TopSizes(subscriptions, window, messages, k, seed)
    files = top_action.Files(source, filled, out)
    top_action.run(sizes, files, read_names(methods), budget, as_json)


def moving(  # noqa: PLR0913  the options of a command are its parameters
    methods: Annotated[
        str, Option(metavar="NAME,...", help="Methods for moving subscriptions, with or without options.")
    ] = "term-cells,ap+-tree,ss-index,iq+-tree",
    workload: Annotated[
        str, Option("--workload", "-w", metavar="NAME", help="Preset or .toml file: words, places, sizes of boxes.")
    ] = "A",
    subscriptions: Annotated[
        int, Option("--subscriptions", "-n", metavar="N", min=1, help="Number of subscriptions.")
    ] = 100_000,
    messages: Annotated[int, Option("--messages", "-m", metavar="N", min=10, help="Live messages.")] = 100_000,
    steps: Annotated[int, Option(min=1, help="Steps to measure, after two to warm up.")] = 10,
    budget: Annotated[float, Option(help="CPU seconds for each method; slow methods take fewer steps.")] = 60.0,
    seed: Annotated[int, Option(help="Seed of the random draws.")] = 1,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Also write the figures to this file, as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure methods for moving subscriptions.

    In each step a tenth of the messages expires, a tenth arrives, and a fifth of the subscriptions moves: 98 % shift by
    0.1 to 1 of their side, 2 % jump. Times are microseconds of CPU for one expiry, arrival, shift or jump; re-filed is
    the share of moves that left their cell or leaf. If two methods give different changes, the run ends.

    \b
    Example:
      nearcast bench moving -n 1000000 -m 1000000 --methods term-cells --steps 100
      nearcast bench moving -w B --methods "term-cells,ap+-tree f=200" --out moving.json
    """
    from nearcast.bench.workloads.workload import find_workload
    from nearcast.cli.bench import moving_action

    chosen = moving_action.workload_of(find_workload(workload), subscriptions, messages, seed)
    moving_action.run(chosen, read_names(methods), steps, budget, out, as_json)


def words(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[
        str, Option("--workload", "-w", metavar="NAME", help="Preset or .toml file: words, places, sizes of boxes.")
    ] = "B",
    subscriptions: Annotated[
        int, Option("--subscriptions", "-n", metavar="N", min=1, help="Number of subscriptions.")
    ] = 100_000,
    messages: Annotated[int, Option("--messages", "-m", metavar="N", min=10, help="Number of messages.")] = 2_000,
    phrases: Annotated[float, Option(help="Share of the subscriptions that are a phrase of two words.")] = 0.05,
    prefixes: Annotated[float, Option(help="Share of the subscriptions whose first word is a prefix.")] = 0.05,
    rounds: Annotated[int, Option(min=1, help="Turns; the first is not counted if there are more.")] = 4,
    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Also write the figures to this file, as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure phrases and prefixes.

    Matches the same texts, in turns, with two indexes: one of plain words, and one in which some of the subscriptions
    have a phrase or a prefix instead. Times are microseconds of CPU for a message, in tables and one by one.

    \b
    Example:
      nearcast bench words -n 1000000 -w B --out words.json
    """
    from nearcast.bench.workloads.workload import find_workload
    from nearcast.cli.bench import words_action

    chosen = find_workload(workload).but(subscriptions=subscriptions, messages=messages)
    words_action.run(chosen, (phrases, prefixes), rounds, out, as_json)
