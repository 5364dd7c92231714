"""`nearcast pipeline size`: the size of the cluster for a load."""

from __future__ import annotations

from typing import Annotated

import typer

from nearcast.cli.console import show
from nearcast.cli.options import Json
from nearcast.cli.pipeline.spark_console import grid


def size(
    subscriptions: Annotated[
        float, typer.Option("--subscriptions", "-n", help="Number of subscriptions.", show_default=False)
    ],
    rate: Annotated[float, typer.Option("--rate", "-r", help="Messages per second.", show_default=False)],
    matches: Annotated[
        float | None, typer.Option(help="Matches per message. [default: 3.4 for each million subscriptions]")
    ] = None,
    interval: Annotated[float, typer.Option(help="Seconds between micro-batches.")] = 1.0,
    cores: Annotated[int, typer.Option(min=1, help="Cores of a host.")] = 16,
    memory: Annotated[float, typer.Option(metavar="GB", help="Memory of a host.")] = 64.0,
    as_json: Json = False,
) -> None:
    """Compute how large a cluster must be, by the formula in docs/pipeline.md.

    \b
    Example:
      nearcast pipeline size --subscriptions 1e9 --rate 50000
    """
    from nearcast.sharding.planning.capacity import MATCHES_PER_MILLION, Load, capacity

    expected = MATCHES_PER_MILLION * subscriptions / 1e6 if matches is None else matches
    load = Load(subscriptions, rate, expected, interval, cores, memory * 1e9)
    sizes = {**load._asdict(), **capacity(load)._asdict()}
    show(sizes, as_json, grid(sizes))
