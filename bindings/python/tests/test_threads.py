"""Several threads get the same answers as one, and nothing waits forever."""

import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pyarrow as pa
import pytest

from blocked_bloom import BloomFilter, ScalableBloomFilter


@pytest.mark.parametrize(
    "make", [lambda: BloomFilter(300_000), lambda: ScalableBloomFilter(0.01, first_keys=1000)]
)
def test_threads_of_a_call_agree(make):
    keys = pa.array([f"key {i}" for i in range(300_000)] + [None])
    one, two = make(), make()
    one.update(keys)
    two.update(keys, threads=2)
    assert one == two
    other = pa.array([f"other {i}" for i in range(100_001)] + [None])
    assert one.contains(other).equals(one.contains(other, threads=3))


@pytest.mark.parametrize(
    "make", [lambda: BloomFilter(400_000), lambda: ScalableBloomFilter(0.01, first_keys=1000)]
)
def test_threads_at_once(make):
    """Four threads add and look up in all ways; no added key is missing."""
    filter, failures = make(), []
    parts = [np.arange(i * 100_000, (i + 1) * 100_000) for i in range(4)]

    def work(i):
        try:
            for part in np.array_split(parts[i], 20):
                if i % 2:
                    filter.update(part, threads=1 + i // 2)
                else:
                    filter.add_new(part.tolist())
                for key in part[:200].tolist():
                    filter.add(key)
                    assert key in filter
                assert (
                    filter.contains(part, threads=1 + i % 2).all()
                    and filter.contains(part.tolist()).all()
                )
                assert len(filter) > 0 and filter.fpr >= 0 and filter.estimate_fpr() >= 0
                if i == 3:
                    assert type(filter).from_bytes(filter.to_bytes()).contains(part).all()
                    other = filter.copy()
                    other |= filter
                    assert other.contains(part).all()
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    [thread.start() for thread in threads]
    [thread.join(120) for thread in threads]
    assert not any(thread.is_alive() for thread in threads) and not failures, failures
    assert filter.contains(np.arange(400_000)).all()


def test_two_filters_that_are_merged_into_each_other():
    a, b = BloomFilter(100_000), BloomFilter(100_000)
    a.update(range(1000))
    b.update(range(1000, 2000))

    def merge(to, other):
        for _ in range(200):
            to |= other
            assert to == to.copy() or True

    threads = [threading.Thread(target=merge, args=pair) for pair in ((a, b), (b, a))]
    [thread.start() for thread in threads]
    [thread.join(60) for thread in threads]
    assert not any(thread.is_alive() for thread in threads)
    assert a.contains(range(2000)).all() and b.contains(range(2000)).all()


def test_a_generator_that_uses_the_filter():
    """Keys are taken from their iterator while no lock is held."""
    filter = BloomFilter(10_000)

    def keys():
        for i in range(3000):
            filter.add(-i)
            filter.update(np.arange(3))
            assert -i in filter
            yield i

    filter.update(keys())
    assert filter.contains(range(-2999, 3000)).all()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_threads_are_no_more_than_cores_and_rows_need():
    filter, most, over = BloomFilter(1_000), [0], threading.Event()

    def watch():
        while not over.is_set():
            most[0] = max(most[0], len(os.listdir("/proc/self/task")))
            time.sleep(0.0002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    before = len(os.listdir("/proc/self/task"))
    rows = np.arange(2_000_000)
    for threads in (1_000, 1_000_000, 2**60):
        filter.update(np.arange(3), threads=threads)
        assert filter.contains(np.arange(3), threads=threads).all()
        filter.contains(rows, threads=threads)
    over.set()
    watcher.join()
    # Threads of a finished call may take a moment to end.
    assert before <= most[0] <= before + 3 * len(os.sched_getaffinity(0))


# The keys are one number, repeated 3 * 10**9 times. The CPU time of the process shows that the call
# has begun, because the waiting thread sleeps and nothing else runs.
CHILD = """
    import threading
    import time
    import numpy as np
    from blocked_bloom import BloomFilter, open
    keys = np.broadcast_to(np.array([7]), 3_000_000_000)
    filter = BloomFilter(100)

    def tell():
        start = time.process_time()
        while time.process_time() < start + 0.2:
            time.sleep(0.01)
        print(time.process_time() - start, time.process_time(), flush=True)

    threading.Thread(target=tell, daemon=True).start()
    {call}
"""
FORMATS = pathlib.Path(__file__).parents[3] / "crates/formats/tests/fixtures"
STORED = FORMATS / "rocksdb/bloom_b10_n5000_str.sst"


@pytest.mark.skipif(os.name != "posix", reason="sends signals")
@pytest.mark.parametrize(
    "call",
    [
        "filter.update(keys)", "filter.contains(keys)", "filter.add_new(keys)",
        "filter.update(keys, threads=2)", "filter.contains(keys, threads=2)",
        "filter.update([keys, keys])",
        f"open({str(STORED)!r}).contains(np.broadcast_to(np.array([b'7']), 3_000_000_000))",
    ],
)
def test_ctrl_c_is_answered(call):
    import resource

    def seconds_of_children():
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime

    before = seconds_of_children()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(CHILD).format(call=call)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )
    try:
        line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        assert "KeyboardInterrupt" in process.communicate()[1]
        # CPU seconds, which do not depend on the machine's load. The whole call takes longer.
        of_call, until_then = map(float, line.split())
        assert of_call < 2 and seconds_of_children() - before - until_then < 2
    finally:
        process.kill()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize(
    "make", [lambda: BloomFilter(100_000), lambda: ScalableBloomFilter(0.01, first_keys=100)]
)
def test_forks_beside_threads(make):
    """A child finds each filter complete, and no lock that stays held forever."""
    filter, other, over = make(), make(), threading.Event()
    rows = np.arange(50_000)

    def work(i):
        while not over.is_set():
            filter.update(rows + i * 50_000, threads=1 + i)
            filter.contains(rows, threads=2 - i)
            if i:
                other.update(rows)
                assert filter != other

    workers = [threading.Thread(target=work, args=(i,)) for i in range(2)]
    [worker.start() for worker in workers]
    failures = []
    for _ in range(100):
        before = filter.contains(rows)
        child = os.fork()
        if child == 0:
            try:
                signal.alarm(20)
                filter.add("child")
                filter.update(rows)
                right = "child" in filter and (filter.contains(rows) >= before).all()
                right &= len(filter.to_bytes()) > 0 and filter.copy() == filter and other != filter
                filter.update(rows, threads=2)
                os._exit(0 if right else 1)
            finally:
                os._exit(2)
        _, status = os.waitpid(child, 0)
        if status != 0:
            failures.append(status)
    over.set()
    [worker.join(60) for worker in workers]
    assert not failures and not any(worker.is_alive() for worker in workers)
