"""A program that streams all present messages file by file. Tests start it, kill it, and start it again.

stream_driver.py FOLDER MASTER [frames]     with frames: messages and changes are streaming DataFrames
"""

from __future__ import annotations

import sys
from pathlib import Path

CHANGES = (
    "op string, order long, id long, tokens array<string>, expression string, "
    "xmin double, ymin double, xmax double, ymax double, region string, "
    "expires timestamp, kind string, alpha double, threshold double"
)
MESSAGES = "id long, text string, lon double, lat double, time timestamp"


def main(root: Path, master: str, has_frames: bool) -> None:
    from nearcast.spark import stream
    from nearcast.spark.runtime.session import open_session
    from nearcast.spark.streaming.stream import run_stream

    session = open_session(master)
    paths = [str(root / name) for name in ("index", "incoming", "matches", "checkpoint")]
    more = {"compact_least": 25, "compact_share": 0.0, "subscriptions": str(root / "subscriptions")}
    if has_frames:
        read = session.readStream.option("maxFilesPerTrigger", 1)
        messages = read.schema(MESSAGES).parquet(paths[1])
        changes = read.schema(CHANGES).parquet(str(root / "changes"))
        given = {"out": paths[2], "checkpoint": paths[3], "changes": changes}
        stream(messages, paths[0], once=True, **given, **more).awaitTermination()
    else:
        run_stream(session, *paths, changes=str(root / "changes"), once=True, max_files=1, **more)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], "frames" in sys.argv)
