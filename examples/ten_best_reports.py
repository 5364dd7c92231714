# The ten best reports around me in the last hour: a list of kind top through a busy morning, and a picture of it.
#
# Writes ten-best-reports.png. Contains information licensed under the Open Government Licence - City of Calgary.
#
# Run it:  python examples/ten_best_reports.py

from datetime import UTC, datetime, timedelta

from matplotlib.dates import DateFormatter, date2num
from matplotlib.figure import Figure

import nearcast as nc
from nearcast.demo.demo_subscriptions import sample_messages

begin = datetime(2024, 3, 6, 14, 0, tzinfo=UTC)  # 7 in the morning in Calgary, on the day with the most reports
end = begin + timedelta(hours=3)
reports = [row for row in sample_messages().to_pylist() if begin <= row["time"] < end]

now = begin
engine = nc.Engine(clock=lambda: now.timestamp())
me = engine.subscribe("incident", near=(-114.07, 51.05), kind="top", k=10, window=timedelta(hours=1), max_dist=15)

ranks = {}  # of each report: (time, rank), while it is in the list
entered = left = 0
for report in reports:
    now = report["time"]
    for event in engine.publish(report["text"], at=(report["lon"], report["lat"]), id=report["id"]):
        entered, left = entered + (event.change > 0), left + (event.change < 0)
    for rank, message in enumerate(engine.results(me)["message"].to_pylist(), 1):
        ranks.setdefault(message, []).append((date2num(now), rank))

print(len(reports), "reports,", entered, "entered the list,", left, "left it")
words = {report["id"]: report["text"] for report in reports}
for row in engine.results(me).to_pylist()[:3]:
    print(f"{row['score']:.3f}", words[row["message"]])

figure = Figure(figsize=(9, 4.5), layout="constrained")
axes = figure.subplots()
for message, path in ranks.items():
    times, places = zip(*path, strict=True)
    axes.step(times, places, where="post", linewidth=2, marker="o", markersize=3)
axes.invert_yaxis()
axes.set_yticks(range(1, 11))
axes.set_ylabel("rank in my list")
axes.set_xlabel("6 March 2024, UTC")
axes.set_title("The ten best reports around me: one line for each report")
axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
figure.savefig("ten-best-reports.png", dpi=90)

# Prints:
# 27 reports, 30 entered the list, 21 left it
# 0.534 Northbound Crowchild Trail approaching Memorial Drive NW | Traffic incident. Blocking the centre lane
# 0.486 Eastbound 32 Avenue at 12 Street NE | Traffic incident. Blocking the left lane
# 0.448 Northbound Crowchild Trail after Flanders Avenue SW | Multi-vehicle incident. Blocking the NB left lane and NB merge ramp
