# Explain: ask why a message does or does not reach a subscription.
#
# Run it:  python examples/explain.py

import nearcast as nc

engine = nc.Engine()
commuter = engine.subscribe("deerfoot AND (incident OR stalled) NOT cleared", near=(-114.00, 51.04), km=3)

for text, place in [
    ("Incident on Deerfoot Trail", (-114.001, 51.035)),
    ("Incident on Crowchild Trail", (-114.001, 51.035)),
    ("Incident on Deerfoot Trail, cleared", (-114.001, 51.035)),
    ("Incident on Deerfoot Trail", (-114.200, 51.035)),
]:
    why = engine.explain(commuter, text, at=place)
    # str(why) is the same as text; the fields are for programs.
    print(f"{text}: {'match' if why.holds else 'no match'}")
    if why.missing:
        print("  missing:", ", ".join(why.missing))
    if why.forbidden:
        print("  forbidden:", ", ".join(why.forbidden))
    if not why.inside:
        print(f"  {why.distance:.1f} km outside the region")

# Prints:
# Incident on Deerfoot Trail: match
# Incident on Crowchild Trail: no match
#   missing: deerfoot
# Incident on Deerfoot Trail, cleared: no match
#   forbidden: cleared
# Incident on Deerfoot Trail: no match
#   11.0 km outside the region
