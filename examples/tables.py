# Tables in and out: read subscriptions from CSV and messages from Parquet, write the matches to Parquet.
#
# Run it:  python examples/tables.py
# The same from a shell:  nearcast match subscriptions.csv messages.parquet --out matches.parquet --rejects rejects.csv

import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import nearcast as nc

folder = Path(tempfile.mkdtemp())

# A circle may be a region; so may a GeoJSON polygon, a box or the whole world.
(folder / "subscriptions.csv").write_text(
    "id,expression,region\n"
    '1,pizza deal,"circle(-73.99, 40.73, 2km)"\n'
    '2,pizza OR pasta,"circle(-73.95, 40.78, 1km)"\n'
    "3,NOT frozen,world\n"
)
messages = pa.table(
    {
        "id": [7, 8, 9],
        "text": ["Pizza deal at the corner", "Frozen pizza, half price", "Fresh pasta"],
        "lon": [-73.991, -73.951, -73.95],
        "lat": [40.731, 40.781, 940.78],  # the last latitude is out of range
    }
)
pq.write_table(messages, folder / "messages.parquet")

index = nc.build_index(folder / "subscriptions.csv")
matches = index.match(folder / "messages.parquet", on_bad="skip")  # matches is an Arrow table
pq.write_table(matches, folder / "matches.parquet")

for row in matches.to_pylist():
    print(f"message {row['message']} -> subscription {row['subscription']}")
for row in index.rejects.to_pylist():
    print(f"row {row['row']} was skipped because of column {row['column']}")

# Prints:
# message 7 -> subscription 1
# message 7 -> subscription 3
# message 8 -> subscription 2
# row 3 was skipped because of column lat
