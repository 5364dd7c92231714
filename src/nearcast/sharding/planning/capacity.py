"""The size of the cluster for a load: a formula with measured constants (docs/how-to/size-a-cluster.md).

    time of a message   c = message_us + decade_us · log10(n / 1 M) + match_us · k  (+ routing_us if sharded)
                            of one core, from Parquet to Parquet
    cores                 = rate · c / busy                              busy: the share of the time that cores may work
    index                 = subscriptions · bytes · replication
    memory of a host      = index / (hosts if sharded else 1) + workers
    delay of the stream   ≈ interval / 2 + overhead + rate · interval · c / cores

n is the number of subscriptions of a shard, k the number of matches of a message. k grows with the number of
subscriptions, and no division into shards reduces it: every match must be delivered.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from nearcast.errors import InvalidInput

_WORTH_A_TASK = 250_000
_MOST_IN_A_SHARD = 4_000_000  # at 120 bytes each: half a gigabyte

MATCHES_PER_MILLION = 3.4
"""Matches of a short message of workload B, for each million subscriptions."""


class Constants(NamedTuple):
    """CPU times measured by `nearcast bench spark` on a virtual machine with two cores; replace them by your own."""

    message_us: float = 9.3  # reading and matching a message without matches among a million subscriptions
    decade_us: float = 4.0  # for each factor of ten in the number of subscriptions
    match_us: float = 0.2  # finding, sorting and writing one match
    routing_us: float = 5.7  # sharded layout only: routing, packing, shuffling
    bytes_per_subscription: float = 120.0
    replication: float = 1.2  # shards that store a subscription, on average
    micro_batch_ms: float = 250.0
    worker_bytes: float = 0.3e9  # a Python worker and its share of the executor, for each core
    busy: float = 0.6
    shard_bytes: float = 1e9  # small enough for one task to build


class Load(NamedTuple):
    subscriptions: float
    messages_per_second: float
    matches_per_message: float
    interval_s: float = 1.0  # of micro-batches
    cores_per_host: int = 16
    host_bytes: float = 64e9


class Capacity(NamedTuple):
    cores: int
    hosts: int
    layout: str
    shards: int
    index_bytes: float
    bytes_per_host: float
    delay_s: float


def capacity(load: Load, constants: Constants | None = None) -> Capacity:
    """The smallest cluster that carries the load, and the memory of each of its hosts."""
    known = constants or Constants()
    if not all(math.isfinite(value) and value > 0 for value in (*load[:2], *load[3:])) or load.matches_per_message < 0:
        raise InvalidInput("subscriptions, messages per second, interval, cores and memory are numbers above 0")
    index = load.subscriptions * known.bytes_per_subscription
    workers = load.cores_per_host * known.worker_bytes
    room = load.host_bytes - workers
    if room <= 0:
        raise InvalidInput(
            f"a host of {load.cores_per_host} cores needs more than {workers / 1e9:.0f} GB for its workers"
        )
    is_sharded = index > room
    index *= known.replication if is_sharded else 1.0
    in_a_shard = min(index, known.shard_bytes) / known.bytes_per_subscription
    seconds = us_per_message(in_a_shard, load.matches_per_message, is_sharded, known) / 1e6
    cores = max(1, math.ceil(load.messages_per_second * seconds / known.busy))
    hosts = math.ceil(cores / load.cores_per_host)
    if is_sharded:
        hosts = max(hosts, math.ceil(index / room))
        cores = max(cores, hosts * load.cores_per_host)
    delay = load.interval_s / 2 + known.micro_batch_ms / 1e3
    delay += load.messages_per_second * load.interval_s * seconds / cores
    return Capacity(
        cores,
        hosts,
        "sharded" if is_sharded else "replicated",
        max(hosts if is_sharded else 1, math.ceil(index / known.shard_bytes)),
        index,
        workers + index / (hosts if is_sharded else 1),
        delay,
    )


def us_per_message(n: float, k: float, is_sharded: bool, constants: Constants) -> float:
    """Microseconds of one core; the part without matches and routing is at least a third of `message_us`."""
    grown = constants.message_us + constants.decade_us * math.log10(n / 1e6)
    routing = constants.routing_us if is_sharded else 0.0
    return max(grown, constants.message_us / 3) + constants.match_us * k + routing


def default_shards(n_subscriptions: int, cores: int) -> int:
    """Enough shards to build on all cores, none too large for one task; few, as each has its own vocabulary."""
    to_build = min(cores, math.ceil(n_subscriptions / _WORTH_A_TASK))
    return max(1, to_build, math.ceil(n_subscriptions / _MOST_IN_A_SHARD))
