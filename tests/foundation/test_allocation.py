"""Memory that a process keeps for its next use."""

import json
import os
import platform
import subprocess
import sys

import pytest

from pren.foundation.allocation import SET_BY_HAND

ROUNDS = 20
# How often the kernel has to hand out memory (page faults) while a block of 40 MB, or of 100, is used again and again.
SCRIPT = f"""
import json, resource, sys
import torch
from pren.foundation.allocation import keep_all_memory, keep_memory
kept = {{"keep": keep_memory, "keep all": lambda: keep_memory() and keep_all_memory()}}.get(sys.argv[1], lambda: None)()
size = 25_000_000 if sys.argv[1] == "keep all" else 10_000_000
for _ in range({ROUNDS}):  # until the heap has room for it wherever it comes to lie
    torch.empty(size).fill_(1)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range({ROUNDS}):
    torch.empty(size).fill_(1)
print(json.dumps([kept, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before]))
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="memory cannot be kept without glibc")


def faults(way, **said):
    plain = {name: value for name, value in os.environ.items() if name not in SET_BY_HAND}
    command = [sys.executable, "-c", SCRIPT, way]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env={**plain, **said})
    return json.loads(done.stdout)


@glibc
@pytest.mark.slow
def test_a_block_that_was_freed_is_used_again():
    _, given_back = faults("as it is")
    assert given_back >= 10 * ROUNDS, "or there would be nothing to mend"
    for way in ("keep", "keep all"):
        kept, after = faults(way)
        assert kept is True
        assert after < ROUNDS


@glibc
@pytest.mark.slow
def test_what_the_user_has_set_stays():
    kept, after = faults("keep", MALLOC_MMAP_THRESHOLD_="1000000", MALLOC_TRIM_THRESHOLD_="1000000")
    assert kept is False
    assert after >= 10 * ROUNDS


def test_a_c_library_that_cannot_be_told(monkeypatch):
    import ctypes

    from pren.foundation.allocation import keep_memory

    for name in SET_BY_HAND:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert keep_memory() is False


# What a process holds after threads have freed what they took, one thread after the other.
THREADS = """
import sys, threading
from pren.foundation.allocation import keep_memory, share_memory
keep_memory()
print(share_memory() if sys.argv[1] == "share" else None)

def work(done, next_one):
    blocks = [bytearray(100_000) for _ in range(300)]
    del blocks
    next_one.set()
    done.wait()

done = threading.Event()
for _ in range(10):  # all stay: a thread takes over the heap of one that has ended
    next_one = threading.Event()
    threading.Thread(target=work, args=(done, next_one)).start()
    next_one.wait()
print(int(open("/proc/self/statm").read().split()[1]) * 4096)
done.set()
"""


@glibc
@pytest.mark.slow
def test_threads_share_what_they_free():
    plain = {name: value for name, value in os.environ.items() if name not in SET_BY_HAND}

    def held(way):
        command = [sys.executable, "-c", THREADS, way]
        told, size = subprocess.run(command, check=True, capture_output=True, text=True, env=plain).stdout.split()
        return told, int(size)

    (told, shared), (_, apart) = held("share"), held("apart")
    assert told == "True"
    assert apart - shared > 100_000_000
