"""`dbench`: throughput by the program of that name. Not a program."""

import collections
import re
import statistics

from mounts.figures import KINDS, in_turn
from mounts.machine import facts_line, need_program, run, say, table
from mounts.mount import Mount
from mounts.runner import JSON, OPTIONS, argument, command, on

THROUGHPUT = re.compile(r"^Throughput ([0-9.]+) MB/sec.*max_latency=([0-9.]+) ms", re.M)


def bench(mount, clients, seconds):
    """(MB/s, the longest operation in ms)"""
    at = mount.dir / "dbench"
    at.mkdir(exist_ok=True)
    done = run(["dbench", "-D", at, "-t", seconds, clients], seconds * 3 + 120)
    match = THROUGHPUT.search(done.stdout)
    run(["rm", "-rf", at], 120)
    assert match, f"dbench gave no throughput: {done.stdout[-400:]}"
    return float(match[1]), float(match[2])


@command("dbench", "7 minutes, 3 with --seconds 3", on(KINDS.replace("null,", "")), argument("--clients", "1,2,4,8", "N[,N]"),
         argument("--seconds", 10, "of each run"), argument("--rounds", 1, "of which the median is taken"), OPTIONS, JSON)
def dbench(options, verdict):
    """Runs dbench with 1, 2, 4 and 8 clients: throughput by dbench's own count.

    All are mounted for the whole run, and each number of clients goes through them in turn."""
    need_program("dbench")
    clients, samples = options.clients.split(","), collections.defaultdict(lambda: collections.defaultdict(list))
    mounts = [Mount(kind, options.options) for kind in options.on.split(",")]
    for count in clients:
        for _, mount in in_turn(mounts, options.rounds):
            with verdict.catch(f"{count} clients on {mount.name}"):
                samples[mount.name][count].append(bench(mount, count, options.seconds))
                verdict.ok(f"{count} clients on {mount.name}")
    rows = [["MB/s (longest operation, ms), by clients", *clients]]
    for name, of in samples.items():
        cell = lambda runs: f"{statistics.median(rate for rate, _ in runs):.0f} ({max(ms for _, ms in runs):.0f})"  # noqa: E731
        rows.append([name, *(cell(of[count]) if count in of else "-" for count in clients)])
    say(table(rows))
    say(f"\n{facts_line()}; dbench -t {options.seconds}")
    return {"samples": samples}
