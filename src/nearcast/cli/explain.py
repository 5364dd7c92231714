"""`nearcast explain`: its options and help text, and what it does. Slow modules are imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from nearcast.cli.options import Json, Space, argument, read_space, required

if TYPE_CHECKING:
    import pyarrow as pa


def explain(
    subscriptions: Annotated[
        Path, argument(metavar="SUBSCRIPTIONS", help="Table (.parquet, .csv, .jsonl) or index folder.")
    ],
    messages: Annotated[Path, argument(metavar="MESSAGES", help="Table (.parquet, .csv, .jsonl).")],
    subscription: Annotated[str, required(metavar="ID", help="The id of the subscription.")],
    message: Annotated[str, required(metavar="ID", help="The id of the message.")],
    space: Space = None,
    as_json: Json = False,
) -> None:
    """Say why a message matches a subscription, or why it does not.

    \b
    Example:
      nearcast explain subscriptions.csv messages.csv --subscription 2 --message 8
    """
    from dataclasses import asdict

    from rich.text import Text

    from nearcast.cli.console import show
    from nearcast.cli.match_actions import is_index
    from nearcast.engine.index import build_index
    from nearcast.engine.saved.saved_index import open_index
    from nearcast.tables import as_arrow

    if is_index(subscriptions):
        index = open_index(subscriptions)
    else:
        index = build_index(as_arrow(subscriptions), "brute", space=read_space(space), on_bad="skip", extra="ignore")
    own = _row_of(index.subscriptions(), subscription, str(subscriptions))
    one = _row_of(as_arrow(messages), message, str(messages))
    found = index.explain_message(own["id"][0].as_py(), one)
    show(asdict(found), as_json, Text(f"subscription {subscription}, message {message}: {found}"))


def _row_of(table: pa.Table, id: str, name: str) -> pa.Table:
    """The row with this id, written as a text."""
    from nearcast.errors import InvalidInput, UnknownId

    if "id" not in table.column_names:
        raise InvalidInput(f"{name} has no column 'id'", column="id")
    for row, value in enumerate(table["id"].to_pylist()):
        if str(value) == id:
            return table.slice(row, 1)
    raise UnknownId(f"{name} has no good row with the id {id}", column="id")
