"""`nearcast generate`: a workload as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Option

from nearcast.cli.console import progress, show, text_table
from nearcast.cli.options import Json, Source, argument, given, required
from nearcast.errors import InvalidInput

WORKLOADS = "A, B, lonlat, skewed, uniform, expressions, mixed, or a .toml file"


def generate(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[str, argument(metavar="WORKLOAD", help=f"{WORKLOADS}.")],
    out: Annotated[Path, required("--out", "-o", metavar="DIR", help="Folder for the files.")],
    seed: Annotated[int | None, Option(help="The same seed gives the same bytes.")] = None,
    subscriptions: Annotated[int | None, Option("--subscriptions", "-n", help="Number of subscriptions.")] = None,
    messages: Annotated[int | None, Option("--messages", "-m", help="Number of messages in each group.")] = None,
    source: Source = None,
    licence: Annotated[str | None, Option(help="Licence of the --from table, kept in workload.json.")] = None,
    as_json: Json = False,
) -> None:
    """Write a workload as Parquet files.

    The folder gets subscriptions.parquet, messages-GROUP.parquet for each group of messages, and
    workload.json with all parameters.

    \b
    Example:
      nearcast generate B --out work --seed 7 -n 1000000 -m 1000
      nearcast generate B --out work --from notes.csv --licence "ODbL 1.0, OpenStreetMap contributors"
    """
    from nearcast.bench.workloads.tables import write_workload
    from nearcast.bench.workloads.text_corpus import corpus_for
    from nearcast.bench.workloads.workload import find_workload

    if licence is not None and source is None:
        raise InvalidInput("--licence belongs to the texts of --from; synthetic workloads have none")
    sizes = given(seed=seed, subscriptions=subscriptions, messages=messages)
    chosen = find_workload(workload).but(**sizes, **({} if source is None else {"space": "lonlat"}))
    with progress(quiet=as_json) as display:
        task = display.add_task("drawing", total=chosen.subscriptions + chosen.messages * len(chosen.groups))

        def on_chunk(name: str, rows: int) -> None:
            display.update(task, advance=rows, description=name)

        origin = None if source is None else {"corpus": source.name, "licence": licence or "not stated"}
        about = write_workload(corpus_for(chosen, source), chosen, out, origin, on_chunk)
    rows = [*((name, f"{n:,}") for name, n in about["rows"].items()), ("workload.json", "")]
    table = text_table(("file", "rows"), rows, title=f"workload {chosen.name}, seed {chosen.seed}, in {out}")
    table.columns[1].justify = "right"
    show({"out": str(out)} | about, as_json, table)
