"""Versions: who sees what, and when removed rows are taken out."""

from __future__ import annotations

import threading

import pytest

from nearcast.matching.versions import Versions


class Member:
    """Records what it is told to do. A removal is reclaimed once no older version is read."""

    def __init__(self, versions: Versions) -> None:
        self.published: list[int] = []
        self.removals: list[int] = []
        self._versions = versions
        versions.add(self)

    def publish(self) -> None:
        self.published.append(self._versions.next_number)

    def reclaim(self, oldest: int) -> bool:
        due = [version for version in self.removals if version <= oldest]
        self.removals = [version for version in self.removals if version > oldest]
        return bool(due)


class Group:
    def __init__(self, member: Member) -> None:
        self._member, self.seen = member, list[int]()

    def publish(self) -> None:
        self.seen.append(len(self._member.published))


@pytest.fixture
def versions() -> Versions:
    return Versions()


@pytest.fixture
def member(versions: Versions) -> Member:
    return Member(versions)


def test_the_outermost_change_publishes_once(versions: Versions, member: Member) -> None:
    group = Group(member)
    versions.after_publishing(group.publish)
    with versions.change():
        with versions.change():
            pass
        assert member.published == []
    assert member.published == [1] and group.seen == [1] and versions.number == 1


def test_a_change_that_raises_publishes_and_lets_others_change(versions: Versions, member: Member) -> None:
    with pytest.raises(KeyError), versions.change():
        raise KeyError
    assert member.published == [1]
    with versions.change():
        pass
    assert versions.number == 2


def test_removed_rows_are_taken_out_at_once_without_readers(versions: Versions, member: Member) -> None:
    with versions.change():
        member.removals.append(versions.next_number)
    assert member.removals == [] and len(member.published) == 2, "published with and without them"


def test_removed_rows_stay_while_an_older_version_is_read(versions: Versions, member: Member) -> None:
    old = versions.enter()
    with versions.change():
        member.removals.append(versions.next_number)
    assert member.removals == [1]
    new = versions.enter()
    versions.leave(old)
    with versions.change():
        pass
    assert member.removals == [], "the reader that is left sees the version that removed them"
    versions.leave(new)


def test_readers_do_not_wait_for_a_change(versions: Versions) -> None:
    read = threading.Event()

    def reader() -> None:
        with versions.read():
            read.set()

    with versions.change():
        thread = threading.Thread(target=reader)
        thread.start()
        assert read.wait(60)
    thread.join()


def test_a_change_in_place_waits_for_readers_and_keeps_new_ones_out(versions: Versions) -> None:
    reader, events, entered = versions.enter(), list[str](), threading.Event()

    def change() -> None:
        with versions.change():
            versions.exclude_readers()
            versions.exclude_readers()  # once more is no error
            events.append("changed")
            assert not entered.wait(0.1), "a reader came in"

    def read() -> None:
        with versions.read():
            entered.set()
            events.append("read")

    writer = threading.Thread(target=change)
    writer.start()
    writer.join(0.1)
    assert writer.is_alive() and events == []
    late = threading.Thread(target=read)
    late.start()
    versions.leave(reader)
    writer.join()
    late.join()
    assert events == ["changed", "read"]


def test_upkeep_gives_way_to_a_change(versions: Versions) -> None:
    done: list[str] = []
    versions.try_change(lambda: done.append("alone"))
    with versions.change():
        thread = threading.Thread(target=lambda: versions.try_change(lambda: done.append("beside")))
        thread.start()
        thread.join()
    assert done == ["alone"] and versions.number == 2


def test_members_that_are_gone_are_passed_over(versions: Versions) -> None:
    Member(versions)
    versions.after_publishing(Group(Member(versions)).publish)
    with versions.change():
        pass
    assert versions.number == 1
