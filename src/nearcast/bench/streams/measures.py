"""What is measured on streams, with units."""

from __future__ import annotations

STREAM_UNITS = {
    "arrival": "µs an arrival",
    "expiry": "µs an expiry",
    "stream": "µs a message, arrival and expiry",
    "refills": "re-evaluations per 1,000 expiries",
    "buffer": "messages in a buffer",
    "index-size": "bytes a subscription, index of subscriptions",
    "move": "µs a move",
    "moves": "ms for the moves of a step",
    "step": "ms a step",
    "traffic": "reports, recalls and pushes a step",
    "reports": "reports and recalls a step",
}
"""Units by measure. `size` (bytes a subscription, everything) is measured on streams too."""
OF_KIND = {
    "top": ("arrival", "expiry", "stream", "refills", "buffer", "index-size", "size"),
    "moving": ("arrival", "expiry", "move", "moves", "step", "traffic", "reports", "size"),
}
