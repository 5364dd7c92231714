# Live changes: insert, replace, remove and expire subscriptions, then save the index and open it again.
#
# Run it:  python examples/live_changes.py

import tempfile
from datetime import UTC, datetime
from pathlib import Path

import nearcast as nc

index = nc.build_index(
    {
        "id": [1, 2],
        "expression": ["flood", "storm"],
        "region": ["world", "circle(-1.5, 53.4, 30km)"],
        "expires": [datetime(2026, 1, 31, tzinfo=UTC), None],
    }
)


def who(text: str, time: str) -> list[int]:
    """The subscriptions that one message in Sheffield concerns."""
    message = {"id": [1], "text": [text], "lon": [-1.47], "lat": [53.38], "time": [time]}
    return index.match(message)["subscription"].to_pylist()


print("at first:", who("Storm and flood warning", "2026-01-15T12:00:00Z"))
print("subscription 1 has expired:", who("Storm and flood warning", "2026-02-15T12:00:00Z"))

index.insert({"id": [3, 2], "expression": ["warning", "snow"], "region": ["world", "world"]})  # adds 3, replaces 2
print("after insert:", who("Storm and flood warning", "2026-01-15T12:00:00Z"))

index.remove([1, 99])  # an unknown id is no error
print("after remove:", who("Storm and flood warning", "2026-01-15T12:00:00Z"))

folder = Path(tempfile.mkdtemp()) / "index"
index.save(folder)
index = nc.open_index(folder)  # mapped into memory; changes stay in this process until it saves again
print("after save and open:", who("Snow warning", "2026-01-15T12:00:00Z"))

# Prints:
# at first: [1, 2]
# subscription 1 has expired: [2]
# after insert: [1, 3]
# after remove: [3]
# after save and open: [2, 3]
