"""Messages as a broker carries them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from nearcast.ingest.brokers.values import decode_values
from nearcast.sharding.payloads import as_arrow_stream


def batch_of(*values: bytes | None) -> pa.RecordBatch:
    entries = [f"s:{k}-0" for k in range(len(values))]
    return pa.record_batch({"entry": entries, "value": pa.array(values, pa.binary())})


def as_json(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def test_json_and_arrow_values_may_be_mixed() -> None:
    table = pa.table(
        {
            "id": pa.array([2, 3], pa.int32()),
            "text": pa.array(["x", "y"]).dictionary_encode(),
            "lon": [1.0, 2.0],
            "lat": [1.0, 2.0],
            "time": pa.array([1_500, None], pa.timestamp("ms")),
            "other": [1, 2],
        }
    )
    messages, rejects = decode_values(batch_of(as_json(id=1, text="a", x=1, y=2, other=[{}]), as_arrow_stream(table)))
    assert rejects.num_rows == 0 and messages["id"].to_pylist() == [1, 2, 3]
    assert messages["x"].to_pylist() == [1, 1, 2] and messages["y"].to_pylist() == [2, 1, 2]
    assert messages["entry"].to_pylist() == ["s:0-0", "s:1-0", "s:1-0"]
    assert messages["time"].to_pylist() == [None, "1970-01-01T00:00:01.500000Z", None]


def test_what_is_no_message_is_rejected_and_spoils_no_other() -> None:
    bad = [
        b"{",
        b"",
        None,
        b"[1]",
        b"\xff\xfe",
        b"[" * 100_000,
        as_json(id="seven", text="a"),
        as_json(id=2**80),
        as_json(id=True),
        as_json(id=1, tokens=["a", 1]),
        as_json(id=1, text="\ud800"),
        as_json(id=1, x="east"),
        as_json(id=1, time=5),
        b"\xff\xff\xff\xff no stream",
    ]
    messages, rejects = decode_values(batch_of(*bad, as_json(id=9, tokens=["a"], x=0.5, y=1)))
    assert messages["id"].to_pylist() == [9]
    assert rejects["source"].to_pylist() == [f"s:{k}-0" for k in range(len(bad))]
    assert all(rejects["reason"].to_pylist())


def test_no_values_make_an_empty_table() -> None:
    messages, rejects = decode_values(batch_of())
    assert messages.num_rows == rejects.num_rows == 0
