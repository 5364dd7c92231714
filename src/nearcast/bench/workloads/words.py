"""Synthetic words by Zipf's law that occur together: a message takes a share of its words from a few topics."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from nearcast.arrays.jit import kernel
from nearcast.bench.workloads.random_numbers import DrawTable, below, draw, table_generator, unit, zipf_table

TOKENS_PER_TOPIC = 8
"""A new topic every eight tokens: short messages have one to three topics, long ones read like joined short ones."""
TOPICS_PER_CLUSTER = 8
_TOPIC_HEAD = 0.35  # topics start at rank vocabulary ** 0.35 (72 of 200,000): the most frequent words are in none
_REDRAWS = 16

_CONSONANTS, _VOWELS = "bcdfghjklmnpqrstvwxz", "aeiou"
_SYLLABLES = np.array([c + v for c in _CONSONANTS for v in _VOWELS], "S2")


class WordModel(NamedTuple):
    """The distribution that the words of a message are drawn from."""

    words: DrawTable  # all words, by rank
    topic_ranks: DrawTable  # the words of a topic, by their position in the topic
    topic_words: np.ndarray  # int32[topics, words of a topic]
    topic_share: float  # share of a message's tokens that come from its topics
    local_share: float  # share of the topics of a message in a cluster that belong to the cluster


class WordSettings(NamedTuple):
    vocabulary: int
    zipf: float
    topics: int
    words_per_topic: int
    topic_share: float
    local_share: float


def word_model(settings: WordSettings, seed: int) -> WordModel:
    """Draw the topics: words of all frequencies but the highest, log-uniform by rank, as Zipf's law has them."""
    rng = table_generator(seed, "topics")
    exponents = rng.uniform(_TOPIC_HEAD, 1.0, (settings.topics, settings.words_per_topic))
    ranks = np.minimum(settings.vocabulary**exponents, settings.vocabulary - 1).astype(np.int32)
    return WordModel(
        zipf_table(settings.vocabulary, settings.zipf),
        zipf_table(settings.words_per_topic, 1.0),
        ranks,
        settings.topic_share,
        settings.local_share,
    )


def spell_words(n: int) -> pa.Array:
    """The n words as different strings of syllables ("ba", "be"): two letters for each factor of 100."""
    parts, first, length = [], 0, 1
    while first < n:
        size = min(len(_SYLLABLES) ** length, n - first)
        digits = [(np.arange(size) // 100**place) % 100 for place in range(length)]
        word = _SYLLABLES[digits[0]]
        for digit in digits[1:]:
            word = np.char.add(word, _SYLLABLES[digit])
        parts.append(pa.array(word.astype(str), pa.string()))
        first, length = first + size, length + 1
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


@kernel
def draw_words(model, state, cluster, marks, stamp, out):
    """Fill `out` with different words and set their marks to `stamp`. `out` must be shorter than `marks`."""
    topic = 0
    for k in range(len(out)):
        if k % TOKENS_PER_TOPIC == 0:
            topic = _draw_topic(model, state, cluster)
        word = _draw_word(model, state, topic)
        tries = 0
        while marks[word] == stamp and tries < _REDRAWS:
            word = _draw_word(model, state, topic)
            tries += 1
        while marks[word] == stamp:  # a steep distribution: take the next free rank
            word = (word + 1) % len(marks)
        marks[word] = stamp
        out[k] = word


@kernel
def _draw_word(model, state, topic):
    if unit(state) < model.topic_share:
        return np.int64(model.topic_words[topic, draw(model.topic_ranks, state)])
    return draw(model.words, state)


@kernel
def _draw_topic(model, state, cluster):
    """Draw a topic of the cluster, or any topic; the first ones are popular (the density falls as 1 / square root)."""
    n_topics = len(model.topic_words)
    if cluster >= 0 and unit(state) < model.local_share:
        return (cluster * TOPICS_PER_CLUSTER + below(state, TOPICS_PER_CLUSTER)) % n_topics
    return np.int64(unit(state) ** 2 * n_topics)
