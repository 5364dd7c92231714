"""`nearcast generate`: workloads as Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from nearcast.cli.console import progress, show
from nearcast.errors import InvalidInput

if TYPE_CHECKING:
    from nearcast.bench.workloads.corpus import Corpus
    from nearcast.bench.workloads.workload import Workload

WORKLOADS = "A, B, lonlat, skewed, uniform, expressions, or a .toml file"


def generate(  # noqa: PLR0913  the options of a command are its parameters
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help=f"{WORKLOADS}.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files.", show_default=False)],
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same bytes.")] = None,
    subscriptions: Annotated[int | None, typer.Option("--subscriptions", "-n", help="How many subscriptions.")] = None,
    messages: Annotated[int | None, typer.Option("--messages", "-m", help="How many messages in each group.")] = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="MESSAGES",
            help="Draw from this table of messages in lon/lat: words and places are then its own.",
        ),
    ] = None,
    licence: Annotated[str | None, typer.Option(help="The licence line of --from, kept in workload.json.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
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
    from nearcast.bench.workloads.workload import find_workload

    if licence is not None and source is None:
        raise InvalidInput("--licence belongs to the texts of --from; made-up workloads have none")
    options = {"seed": seed, "subscriptions": subscriptions, "messages": messages}
    chosen = changed(find_workload(workload), options)
    if source is not None:
        chosen = chosen.but(space="lonlat")
    with progress(quiet=as_json) as shown:
        task = shown.add_task("drawing", total=chosen.subscriptions + chosen.messages * len(chosen.groups))

        def tell(name: str, rows: int) -> None:
            shown.update(task, advance=rows, description=name)

        note = None if source is None else {"corpus": source.name, "licence": licence or "not stated"}
        about = write_workload(corpus_of(chosen, source), chosen, out, note, tell)
    show({"out": str(out)} | about, as_json, _table(out, about))


def changed(workload: Workload, options: dict[str, Any]) -> Workload:
    """The workload with the options that were given."""
    return workload.but(**{name: value for name, value in options.items() if value is not None})


def corpus_of(workload: Workload, source: Path | None) -> Corpus:
    """The workload's own corpus, or the texts of a table."""
    if source is None:
        from nearcast.bench.workloads.corpus import SyntheticCorpus

        return SyntheticCorpus(workload)
    from nearcast.bench.workloads.text_corpus import text_corpus

    return text_corpus(source, workload)


def _table(out: Path, about: dict[str, Any]) -> Table:
    workload = about["workload"]
    title = f"workload {workload['name']}, seed {workload['seed']}, in {out}"
    table = Table(title=title, title_justify="left")
    table.add_column("file")
    table.add_column("rows", justify="right")
    for name, rows in about["rows"].items():
        table.add_row(name, f"{rows:,}")
    table.add_row("workload.json", "")
    return table
