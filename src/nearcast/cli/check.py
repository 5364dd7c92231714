"""`nearcast check`: its options and help text, and what it does. Slow modules are imported when it runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from nearcast.cli.options import Json, argument, required


def check(
    path: Annotated[Path, argument(metavar="PATH", help="Saved index, engine or vocabulary, or a folder of them.")],
    out: Annotated[Path | None, required(metavar="INDEX", help="Write a sound copy of an index here.")] = None,
    as_json: Json = False,
) -> None:
    """Check saved files of which you do not know who wrote them.

    Every checksum, size, offset, row number, term and id is checked. Of an index, only what was given is read; the
    rest is built anew, which takes as long as building the index. What a method keeps besides is not read: opening
    trusts it. So open the copy that --out writes, and not the original.

    \b
    Example:
      nearcast check saved --out checked
    """
    from rich.text import Text

    from nearcast.cli.console import show
    from nearcast.engine.saved.checking import check_path

    found = check_path(path, out)
    lines = "\n".join(f"{each['path']}: {each['format']}, {each['checked']}" for each in found)
    show(found, as_json, Text(lines))
