# Ranked subscriptions: deliver a message when its score reaches a threshold.
#
# score = alpha * (share of the box that the message covers) + (1 - alpha) * (share of the words that the message has)
#
# Run it:  python examples/ranked.py

import nearcast as nc

weights = {"token": ["jazz", "concert"], "weight": [3.0, 1.0]}  # "jazz" counts three times as much as "concert"
engine = nc.Engine(weights=weights)

fan = engine.subscribe("jazz concert", box=(-74.0, 40.7, -73.9, 40.8), kind="rank", alpha=0.4, threshold=0.7)

for text, place in [
    ("Jazz concert tonight", (-73.95, 40.75)),  # both words, inside
    ("Jazz tonight", (-73.95, 40.75)),  # the heavier word, inside
    ("Concert tonight", (-73.95, 40.75)),  # the lighter word, inside
    ("Jazz concert tonight", (-73.50, 40.75)),  # both words, outside
]:
    why = engine.explain(fan, text, at=place)
    print(f"{text}: score {why.score:.2f}, {'delivered' if why.holds else 'not delivered'}")
    assert bool(engine.publish(text, at=place)) == why.holds

# Prints:
# Jazz concert tonight: score 1.00, delivered
# Jazz tonight: score 0.85, delivered
# Concert tonight: score 0.55, not delivered
# Jazz concert tonight: score 0.60, not delivered
