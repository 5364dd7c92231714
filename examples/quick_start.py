# Quick start: subscribe to words at a place, publish a message, and see whom the message concerns.
#
# Run it:  python examples/quick_start.py

import nearcast as nc

engine = nc.Engine()

# What and where: an expression over words, and a circle of 3 km around a point (longitude, latitude).
commuter = engine.subscribe("deerfoot AND (incident OR stalled) NOT cleared", near=(-114.00, 51.04), km=3)
# A box: xmin, ymin, xmax, ymax.
downtown = engine.subscribe("incident", box=(-114.10, 51.03, -114.04, 51.06))
# No place: everywhere.
newsroom = engine.subscribe("vehicle incident")

names = {commuter: "commuter", downtown: "downtown", newsroom: "newsroom"}
for text, place in [
    ("Two vehicle incident on Deerfoot Trail", (-114.001, 51.035)),
    ("Stalled truck on Deerfoot Trail", (-114.010, 51.050)),
    ("Incident on 6 Avenue, now cleared", (-114.070, 51.048)),
]:
    matches = engine.publish(text, at=place)
    print(f"{text}: {', '.join(names[match.subscription] for match in matches)}")

# Prints:
# Two vehicle incident on Deerfoot Trail: commuter, newsroom
# Stalled truck on Deerfoot Trail: commuter
# Incident on 6 Avenue, now cleared: downtown
