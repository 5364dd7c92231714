"""`make fuzz`: feeds changed entries of the corpus to every target, for ten minutes in all.

An input that is found wanting is written to the corpus, where `make test` feeds it from then on.
"""

from __future__ import annotations

import sys
import time
from hashlib import sha1
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz_targets import CORPUS, TARGETS, corpus, feed

LONGEST_S = 1.0
_PIECES = [
    b"(",
    b")",
    b'"',
    b"{",
    b"}",
    b" OR ",
    b" AND NOT ",
    b"*",
    b"-",
    b"circle(",
    b"9" * 400,
    b"[",
    b"]",
    b",",
    b":",
]
_PIECES += [b"\xcc\x81\xcc\xa3" * 50]
_PIECES += [b"\xed\xa0\x80", b"\x00", b"\n", b"null", b"1e999", b"-0", b"NaN", b"\xff", b"km"]


def changed(content: bytes, others: list[bytes], random: Random) -> bytes:
    """The content after a few changes: bytes, pieces, repeats, and parts of other entries."""
    made = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 4, 8))):
        at, kind = random.randrange(len(made) + 1), random.randrange(6)
        stop = min(len(made), at + random.randrange(1, 20))
        if kind == 0 and at < len(made):
            made[at] = random.randrange(256)
        elif kind == 1:
            made[at:at] = random.choice(_PIECES)
        elif kind == 2:
            del made[at:stop]
        elif kind == 3:
            made[at:at] = made[at:stop] * random.choice((2, 10, 300))
        elif kind == 4:
            other = random.choice(others)
            first = random.randrange(len(other) + 1)
            made[at:stop] = other[first : first + random.randrange(60)]
        else:
            made[at:at] = random.choice(_PIECES) * random.choice((3, 60, 2000))
    return bytes(made[:100_000])


def main(seconds: float, targets: list[str]) -> int:
    random, failures = Random(), 0
    for target in targets or TARGETS:
        entries, until, n, slowest = corpus(target), time.monotonic() + seconds / len(targets or TARGETS), 0, 0.0
        last = CORPUS.parent / f"last-{target}"
        feed(target, entries[0])  # compiles
        while time.monotonic() < until:
            content, begun = changed(random.choice(entries), entries, random), time.process_time()
            reason = ""
            last.write_bytes(content)  # what is left of a crash
            try:
                feed(target, content)
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"
            took = time.process_time() - begun
            n, slowest = n + 1, max(slowest, took)
            if reason or took > LONGEST_S:
                failures += 1
                file = CORPUS / target / f"found-{sha1(content).hexdigest()[:12]}"
                file.write_bytes(content)
                sys.stdout.write(f"{target}: {reason[:300] or f'{took:.1f} s'}; see {file}\n")
        last.unlink(missing_ok=True)
        sys.stdout.write(f"{target}: {n:,} inputs, the slowest took {slowest * 1000:.0f} ms\n")
    return 1 if failures else 0


if __name__ == "__main__":
    raise SystemExit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 600.0, sys.argv[2:]))
