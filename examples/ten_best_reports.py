# The ten best reports around me in the last hour: a list of kind top through a busy morning, and a picture of it.
#
# Writes ten-best-reports.png. Contains information licensed under the Open Government Licence - City of Calgary.
#
# Run it:  python examples/ten_best_reports.py

import re
from datetime import UTC, datetime, timedelta

from matplotlib import colormaps
from matplotlib.dates import DateFormatter, MinuteLocator, date2num
from matplotlib.figure import Figure

import nearcast as nc
from nearcast.demo.demo_subscriptions import sample_messages

begin = datetime(2024, 3, 6, 14, 0, tzinfo=UTC)  # 7 in the morning in Calgary, on the day with the most reports
end = begin + timedelta(hours=3)
reports = [row for row in sample_messages().to_pylist() if begin <= row["time"] < end]

now = begin
engine = nc.Engine(clock=lambda: now.timestamp())
me = engine.subscribe("incident", near=(-114.07, 51.05), kind="top", k=10, window=timedelta(hours=1), max_dist=15)

cells = []  # (rank, report, from, until): who is where in the list
entered = left = 0
for report, until in zip(reports, [row["time"] for row in reports[1:]] + [end], strict=True):
    now = report["time"]
    for event in engine.publish(report["text"], at=(report["lon"], report["lat"]), id=report["id"]):
        entered, left = entered + (event.change > 0), left + (event.change < 0)
    for rank, message in enumerate(engine.results(me)["message"].to_pylist(), 1):
        cells.append((rank, message, date2num(now), date2num(until)))

print(len(reports), "reports,", entered, "entered the list,", left, "left it")
words = {report["id"]: report["text"] for report in reports}
for row in engine.results(me).to_pylist()[:3]:
    print(f"{row['score']:.3f}", words[row["message"]])

bars = []  # neighbouring cells of one report at one rank, joined
for rank, message, start, stop in sorted(cells, key=lambda cell: (cell[0], cell[2])):
    if bars and bars[-1][:2] == [rank, message] and bars[-1][3] == start:
        bars[-1][3] = stop
    else:
        bars.append([rank, message, start, stop])

figure = Figure(figsize=(12, 5.5), layout="constrained")
axes = figure.subplots()
colours = {report["id"]: colormaps["tab20"]((7 * at) % 20) for at, report in enumerate(reports)}
width = date2num(end) - date2num(begin)
for rank, message, start, stop in bars:
    axes.barh(rank, stop - start, left=start, height=0.9, color=colours[message], alpha=0.6, edgecolor="white")
    street = re.split(r" (?:approaching|at|after|and|near|before|between|from) ", words[message].split(" | ")[0])[0]
    street = re.sub(r"^(North|South|East|West)bound ", "", street)
    fits = int(165 * (stop - start) / width)  # letters
    if fits >= 4:
        name = street if len(street) <= fits else street[: fits - 1] + "…"
        axes.text(start + 0.004 * width, rank, name, fontsize=8, va="center")
axes.set_xlim(date2num(reports[0]["time"]), date2num(end))
axes.set_ylim(10.5, 0.5)
axes.set_yticks(range(1, 11))
axes.set_ylabel("rank in my list")
axes.set_xlabel("6 March 2024, UTC")
axes.set_title("The ten best reports around me: a colour for each report, with the first words of its place")
axes.xaxis.set_major_locator(MinuteLocator((0, 30)))
axes.xaxis.set_major_formatter(DateFormatter("%H:%M"))
figure.savefig("ten-best-reports.png", dpi=90)

# Prints:
# 27 reports, 30 entered the list, 21 left it
# 0.534 Northbound Crowchild Trail approaching Memorial Drive NW | Traffic incident. Blocking the centre lane
# 0.486 Eastbound 32 Avenue at 12 Street NE | Traffic incident. Blocking the left lane
# 0.448 Northbound Crowchild Trail after Flanders Avenue SW | Multi-vehicle incident. Blocking the NB left lane and NB merge ramp
