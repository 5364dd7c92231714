"""A program that streams all present messages file by file. Tests start it, kill it, and start it again."""

from __future__ import annotations

import sys
from pathlib import Path


def main(root: Path, master: str) -> None:
    from nearcast.spark.runtime.session import open_session
    from nearcast.spark.streaming.stream import run_stream

    session = open_session(master)
    paths = [str(root / name) for name in ("index", "incoming", "matches", "checkpoint")]
    more = {"compact_least": 25, "compact_share": 0.0, "subscriptions": str(root / "subscriptions")}
    run_stream(session, *paths, changes=str(root / "changes"), once=True, max_files=1, **more)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
