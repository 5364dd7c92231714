"""Keys that Spark's hash partitioning spreads evenly: plain shard numbers would put several shards into one partition,
and leave other partitions empty.
"""

from __future__ import annotations

_MASK = 0xFFFFFFFF
_SEED = 42


def spark_hash(value: int) -> int:
    """Spark's `hash` of an int (Murmur3), as an unsigned number."""
    k = value * 0xCC9E2D51 & _MASK
    k = (_rotated(k, 15)) * 0x1B873593 & _MASK
    h = (_rotated(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4  # bytes of an int
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    return h ^ h >> 16


def keys_of_shards(n_shards: int, n_partitions: int) -> dict[int, int]:
    """For each shard a key of its own, whose rows Spark sends to the partition `shard % n_partitions`."""
    keys = dict[int, int]()
    waiting = {partition: list(range(partition, n_shards, n_partitions)) for partition in range(n_partitions)}
    key = 0
    while len(keys) < n_shards:
        if shards := waiting[_partition(key, n_partitions)]:
            keys[shards.pop()] = key
        key += 1
    return keys


def _partition(key: int, n_partitions: int) -> int:
    unsigned = spark_hash(key)
    signed = unsigned - (1 << 32) if unsigned >= 1 << 31 else unsigned
    return signed % n_partitions  # like pmod


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> 32 - bits) & _MASK
