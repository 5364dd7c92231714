"""Changes of an index in small steps, with a look at its inside after each: what the tests of several methods share."""

from __future__ import annotations

from collections.abc import Callable

from changing_world import World, expect_right, update
from nearcast.matching.checks.cases import Message, Subscription, empty, expect_equal, insert, remove
from nearcast.matching.subscription_set import SubscriptionSet

Step = list[Subscription] | list[int]
"""Subscriptions that come or are replaced, or ids that go."""
ExpectSound = Callable[[SubscriptionSet], None]


def expect_sound_in_steps(
    method: str, steps: list[Step], expect_sound: ExpectSound, messages: list[Message], ask_each_time: bool = False
) -> None:
    """From nothing on: sound after every step, with the right answers at the end, or after every step too."""
    matcher, oracle = empty(method), empty("brute")
    for step in steps:
        for each in (matcher, oracle):
            if isinstance(step[0], Subscription):
                insert(each, step)  # type: ignore[arg-type]
            else:
                remove(each, step)  # type: ignore[arg-type]
        expect_sound(matcher)
        if ask_each_time:
            expect_equal(matcher, oracle, messages)
    expect_equal(matcher, oracle, messages)


def expect_sound_in_rounds(method: str, world: World, rounds: int, expect_sound: ExpectSound) -> None:
    """A hundred ids, then rounds of ten changes of up to 30 ids each: growing in one round, shrinking in the next."""
    matcher = empty(method)
    matcher.insert(world.subscribe(100))
    expect_sound(matcher)
    for turn in range(rounds):
        for _ in range(10):
            update(matcher, world, int(world.rng.integers(1, 30)), insert_share=0.3 if turn % 2 else 0.7)
        expect_sound(matcher)
        expect_right(matcher, world, 15)
