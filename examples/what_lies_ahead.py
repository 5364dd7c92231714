# Aircraft that hear of what lies ahead of them: real tracks, boxes that fly ahead, and a picture of one flight.
#
# Writes what-lies-ahead.png. Positions of aircraft: The OpenSky Network. The weather is invented.
#
# Run it:  python examples/what_lies_ahead.py

from itertools import groupby
from math import cos, radians, sin

from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import nearcast as nc
from nearcast.demo.flights import sample_flights, weather_reports

shown = int("4baa61", 16)  # the aircraft of the picture


def box_ahead(row, km=90, margin_km=15):
    """The box of the next `km` of a straight flight, with a margin at each side."""
    y_km = 111.2  # of a degree
    x_km = y_km * cos(radians(row["lat"]))
    to_x = row["lon"] + km * sin(radians(row["track_deg"])) / x_km
    to_y = row["lat"] + km * cos(radians(row["track_deg"])) / y_km
    low = [min(row["lon"], to_x) - margin_km / x_km, min(row["lat"], to_y) - margin_km / y_km]
    return [*low, max(row["lon"], to_x) + margin_km / x_km, max(row["lat"], to_y) + margin_km / y_km]


reports, flights = weather_reports(), sample_flights().to_pylist()
moving, boxes = nc.Moving(), {}
entered = left = 0
path, events = [], []  # of the aircraft of the picture: rows and their boxes, (row, message, change)
for now, group in groupby(flights, key=lambda row: row["time"]):
    rows = {int(row["aircraft"], 16): row for row in group}
    before, boxes = boxes, {id: box_ahead(row) for id, row in rows.items()}
    gone, new, known = before.keys() - boxes.keys(), boxes.keys() - before.keys(), before.keys() & boxes.keys()
    changes = moving.unsubscribe(list(gone), now).to_pylist()
    for id in new:
        box = dict(zip(("xmin", "ymin", "xmax", "ymax"), ([value] for value in boxes[id]), strict=True))
        expression = "(thunderstorm OR hail OR turbulence) NOT cleared"
        changes += moving.subscribe({"id": [id], "expression": [expression], **box}).to_pylist()
    published = reports.filter([time == now for time in reports["time"].to_pylist()])
    changes += moving.step(now, published, list(known), [boxes[id] for id in known]).to_pylist()
    entered += sum(change["change"] > 0 for change in changes)
    left += sum(change["change"] < 0 for change in changes)
    if shown in rows:
        path.append((rows[shown], boxes[shown]))
        events += [(rows[shown], each["message"], each["change"]) for each in changes if each["subscription"] == shown]

print(len(flights), "positions,", entered, "reports entered a box,", left, "left it")
texts = dict(zip(reports["id"].to_pylist(), reports["text"].to_pylist(), strict=True))
for row, message, change in events:
    print(row["time"].strftime("%H:%M:%S"), row["call_sign"], "+" if change > 0 else "-", texts[message])

figure = Figure(figsize=(9, 5), layout="constrained")
axes = figure.subplots()
axes.plot([row["lon"] for row, _ in path], [row["lat"] for row, _ in path], color="0.4", label="track")
row, (xmin, ymin, xmax, ymax) = path[len(path) // 3]
axes.add_patch(Rectangle((xmin, ymin), xmax - xmin, ymax - ymin, alpha=0.2, label=f"box ahead at {row['time']:%H:%M}"))
axes.plot(row["lon"], row["lat"], ">", color="C0", markersize=9)
for change, colour, sign, name in ((1, "C2", "^", "a report enters"), (-1, "C3", "v", "a report leaves")):
    at = [(row["lon"], row["lat"]) for row, _, each in events if each == change]
    axes.plot(*zip(*at, strict=True), sign, color=colour, markersize=8, linestyle="none", label=name)
heard = {message for _, message, _ in events}
for report in reports.to_pylist():
    axes.plot(report["lon"], report["lat"], "*", color="C1" if report["id"] in heard else "0.7", markersize=11)
    axes.annotate(report["id"], (report["lon"], report["lat"]), xytext=(6, 4), textcoords="offset points")
marks = {}  # the reports of each mark
for row, message, change in events:
    marks.setdefault((row["lon"], row["lat"], change), []).append(str(message))
for (lon, lat, change), messages in marks.items():
    to = {"xytext": (0, 8 if change > 0 else -16), "textcoords": "offset points"}
    axes.annotate(", ".join(messages), (lon, lat), ha="center", fontsize=8, **to)
axes.set_aspect(1.46)  # a degree of latitude is so much longer than one of longitude at 47 degrees
axes.set_xlabel("longitude")
axes.set_ylabel("latitude")
axes.set_title("One flight, the box ahead of it, and the reports (stars) that entered and left it")
axes.legend(loc="lower right")
figure.savefig("what-lies-ahead.png", dpi=90)

# Prints:
# 2317 positions, 133 reports entered a box, 132 left it
# 13:43:30 THY7WR + Thunderstorm, tops above flight level 380
# 13:43:30 THY7WR + Thunderstorm
# 13:44:30 THY7WR - Thunderstorm
# 13:48:00 THY7WR + Severe turbulence reported
# 13:50:00 THY7WR - Thunderstorm, tops above flight level 380
# 13:51:30 THY7WR + Hail
# 13:52:30 THY7WR - Hail
# 13:54:00 THY7WR + Severe turbulence over the ridge
# 13:55:00 THY7WR - Severe turbulence reported
# 13:55:00 THY7WR - Severe turbulence over the ridge
# 13:56:00 THY7WR + Hail
# 13:56:00 THY7WR + Thunderstorm, moving east
# 13:56:00 THY7WR + Severe turbulence over the ridge
# 13:58:00 THY7WR - Hail
# 13:58:00 THY7WR - Thunderstorm, moving east
# 14:00:00 THY7WR - Severe turbulence over the ridge
# 14:01:30 THY7WR + Thunderstorm, moving east
# 14:02:00 THY7WR + Turbulence ahead of the front
# 14:04:30 THY7WR - Thunderstorm, moving east
# 14:09:30 THY7WR - Turbulence ahead of the front
