"""Checks over long random runs: equal to brute force after every step."""

from __future__ import annotations

from typing import Any

from nearcast.moving.checks.worlds import FINE, OUTSIDE, SPHERE, TINY, run_against_brute


def check_tiny_pools(method: str, options: dict[str, Any]) -> None:
    for seed in range(8):
        run_against_brute(method, options, TINY, seed, 60)


def check_plain_subscriptions_at_points(method: str, options: dict[str, Any]) -> None:
    for seed in range(4):
        run_against_brute(method, options, TINY._replace(expressions=False, ranges=False), seed, 80)


def check_many_places(method: str, options: dict[str, Any]) -> None:
    for seed in range(2):
        run_against_brute(method, options, FINE, seed, 250)


def check_many_messages_of_few_words(method: str, options: dict[str, Any]) -> None:
    world = FINE._replace(words=("a", "b"), n_messages=2000, expressions=False)
    for seed in range(2):
        run_against_brute(method, options, world, seed, 250)


def check_places_outside_the_space(method: str, options: dict[str, Any]) -> None:
    for seed in range(4):
        run_against_brute(method, options, OUTSIDE, seed, 60)


def check_circles_polygons_and_the_antimeridian(method: str, options: dict[str, Any]) -> None:
    for seed in range(6):
        run_against_brute(method, options, SPHERE, seed, 60)


def check_saved_and_opened_in_the_middle_of_runs(method: str, options: dict[str, Any]) -> None:
    for seed, world in enumerate((TINY, SPHERE), 100):
        run_against_brute(method, options, world, seed, 60, save_every=25)
