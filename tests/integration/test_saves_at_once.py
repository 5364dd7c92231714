"""Several processes save to one folder, others open it: no open fails, and every save that is opened is a whole one."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from nearcast.arrays.bundle import read_bundle, write_bundle

FORMAT = ("test-bundle", 3)
SECONDS = 3.0
WRITER = """
import sys, time
import numpy as np
from nearcast.arrays.bundle import write_bundle
folder, number, until = sys.argv[1], int(sys.argv[2]), time.monotonic() + float(sys.argv[3])
count = 0
while time.monotonic() < until:
    count += 1
    arrays = {f"part{k}": np.full(100, number * 1_000_000 + count) for k in range(8)}
    write_bundle(folder, ("test-bundle", 3), arrays, {"stamp": number * 1_000_000 + count})
print(count)
"""
READER = """
import sys, time
from nearcast.arrays.bundle import read_bundle
folder, until = sys.argv[1], time.monotonic() + float(sys.argv[2])
count = 0
while time.monotonic() < until:
    count += 1
    arrays, header = read_bundle(folder, ("test-bundle", 3))
    assert len(arrays) == 8 and all((array == header["stamp"]).all() for array in arrays.values())
print(count)
"""


def test_two_processes_save_to_one_folder_while_others_open_it(tmp_path: Path) -> None:
    folder = tmp_path / "b"
    write_bundle(folder, FORMAT, {f"part{k}": np.zeros(100, np.int64) for k in range(8)}, {"stamp": 0})
    commands = [[WRITER, str(folder), str(number), str(SECONDS)] for number in (1, 2)]
    commands += [[READER, str(folder), str(SECONDS)]] * 2
    started = [subprocess.Popen([sys.executable, "-c", *each], stdout=subprocess.PIPE) for each in commands]
    counts = [int(each.communicate(timeout=60)[0]) for each in started]
    assert [each.returncode for each in started] == [0] * 4 and min(counts) > 5
    assert read_bundle(folder, FORMAT)[1]["stamp"] > 0
    assert len(list(folder.iterdir())) == 2, "the manifest and the last generation"


def test_a_commit_waits_for_that_of_another_process(tmp_path: Path) -> None:
    from nearcast.arrays.files import locked_folder

    folder = tmp_path / "b"
    write_bundle(folder, FORMAT, {"n": np.zeros(3)}, {"stamp": 1})
    with locked_folder(folder):
        other = subprocess.Popen([sys.executable, "-c", WRITER, str(folder), "7", "0.01"], stdout=subprocess.PIPE)
        time.sleep(1.5)
        assert read_bundle_stamp(folder) == 1 and other.poll() is None
    assert other.communicate(timeout=30) and other.returncode == 0
    assert read_bundle_stamp(folder) > 7_000_000


def read_bundle_stamp(folder: Path) -> int:
    return int(read_bundle(folder, FORMAT)[1]["stamp"])
