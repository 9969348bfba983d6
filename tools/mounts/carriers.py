"""`carriers`: mounts of ram: over io_uring and over /dev/fuse beside each other. Not a program."""

import collections
import pathlib
import statistics
import time

from mounts.load import load
from mounts.machine import Skip, facts_line, say, table
from mounts.mount import Mount, plain
from mounts.peers import passthrough_hp, passthrough_hp_uring
from mounts.runner import JSON, argument, command

DIRS, FILES, NEW = 20, 100, 1000
# Transactions of PostMark by each process.
TRANSACTIONS = 2000
RING, OWN, DEVICE, HP, HP_RING = "io_uring", "io_uring, own checks", "/dev/fuse", "hp", "hp+uring"


def rows():
    """(name, whether the kernel caches, commands that are measured together, operations, commands before and after)."""
    for procs in (1, 4):
        look = ("stat", DIRS, FILES, procs)
        yield f"stat that asks: {procs}", False, [look], DIRS * FILES, [], []
        yield f"open+close: {procs}", False, [(*look, "open")], DIRS * FILES, [], []
        new, count = (NEW, procs, "own"), NEW * procs
        # The writes come first, since they make the files.
        yield f"write 4 KiB: {procs}", True, [("direct-write", *new)], count, [], []
        yield f"read 4 KiB: {procs}", True, [("direct-read", *new)], count, [], []
        make, end = ("create", *new), ("unlink", *new)
        yield f"create+unlink: {procs}", False, [make, end], count, [], []
        yield f"mkdir+rmdir: {procs}", False, [("mkdir", *new), ("rmdir", *new)], count, [], []
        yield f"rename, twice: {procs}", False, [("rename", *new)], count, [make], [end]
        yield f"PostMark: {procs}", True, [("postmark", TRANSACTIONS, procs, "own")], TRANSACTIONS * procs, [], []


def ram(options, is_cached):
    return plain("ram:", options if is_cached else f"ttl=0,{options}")


def hp(program, is_cached, *words):
    cache = [] if is_cached else ["--nocache"]
    return Mount("custom", command=[str(program), *words, "--foreground", *cache, "{source}", "{mountpoint}"])


# Each mounts with caches of the kernel, or without.
KINDS = {
    RING: lambda is_cached: ram("uring,allow_other", is_cached),
    OWN: lambda is_cached: ram("uring", is_cached),
    DEVICE: lambda is_cached: ram("no_uring,allow_other", is_cached),
}
PEERS = {
    HP: lambda is_cached: hp(passthrough_hp(), is_cached),
    HP_RING: lambda is_cached: hp(passthrough_hp_uring(), is_cached, "--nopassthrough", "-o", "io_uring,allow_other"),
}


def measure(mounts, options):
    """({(row, kind): [(thousand operations a second, processor time of one in us)]}, number of rounds)"""
    samples, began, number = collections.defaultdict(list), time.monotonic(), 0

    def run(mount, commands):
        results = [load(mount, what, mount.dir, *more) for what, *more in commands]
        return sum(ns for ns, _ in results), sum(cpu_s for _, cpu_s in results)

    # A round takes as long as the others did.
    while number < options.rounds and (time.monotonic() - began) * (number + 1) <= options.limit * max(number, 1):
        order = list(mounts)[number % len(mounts):] + list(mounts)[:number % len(mounts)]
        for name, is_cached, commands, operations, before, after in rows():
            for kind in order:
                mount = mounts[kind][is_cached]
                run(mount, before)
                total_ns, cpu_s = run(mount, commands)
                samples[name, kind].append((1e6 / total_ns, cpu_s / operations * 1e6))
                run(mount, after)
        number += 1
    return samples, number


@command("carriers", "1 minute, at most 6 with --peers, and 4 for their first build", argument("--rounds", 9, "of which the median is taken"),
         argument("--peers", False, "passthrough_hp too"), argument("--limit", 300, "no round that would end after so many seconds"), JSON)
def carriers(options, verdict):
    """Measures mounts of ram: over io_uring and over /dev/fuse beside each other (by tools/check/with-uring).

    Rows: stat that asks the server, open and close, reads and writes of 4 KiB (O_DIRECT), create and unlink, mkdir and rmdir,
    rename in own directories, transactions of PostMark, by 1 and 4 processes. The kernel caches names and attributes for no time
    in the rows of names; reads, writes and PostMark have mounts with each server's defaults (and its cache of writes): with
    attributes that are always stale, the kernel asks for them, and for file capabilities, at each read or write.

    Columns: `ram:` over io_uring, the same where only root can reach the mount (own checks), `ram:` over /dev/fuse; with --peers
    passthrough_hp on a tmpfs (hp: Debian 12's, over /dev/fuse; hp+uring: Debian unstable's, with `-o io_uring`, which reads and
    writes by itself: the kernel's passthrough is off). Tables: thousand operations a second, processor time of client and server
    for an operation in us, and its ratios to the peers."""
    switch = pathlib.Path("/sys/module/fuse/parameters/enable_uring")
    if not switch.exists() or switch.read_text().strip() != "Y":
        raise Skip("the kernel does not offer io_uring (tools/check/with-uring)")
    mounts = {}
    for kind, make in {**KINDS, **(PEERS if options.peers else {})}.items():
        with verdict.catch(kind):
            mounts[kind] = make(False), make(True)
            load(mounts[kind][0], "make", mounts[kind][0].dir, DIRS, FILES)
            verdict.ok(kind)
    samples, number = measure(mounts, options)
    names = [name for name, *_ in rows()]
    median = {key: [statistics.median(part) for part in zip(*of)] for key, of in samples.items()}
    say(f"{facts_line()}; medians of {number} rounds.")
    for part, title in enumerate(("Thousand a second", "Processor time of client and server for an operation, us")):
        say(f"\n{title}:\n")
        say(table([["", *mounts], *([name, *(f"{median[name, kind][part]:.1f}" for kind in mounts)] for name in names)]))
    pairs = [(ours, peer) for peer in PEERS if peer in mounts for ours in (RING, OWN) if ours in mounts]
    if pairs:
        say("\nRatio of processor times:\n")
        say(table([["", *map(" to ".join, pairs)]] + [
            [name, *(f"{median[name, ours][1] / median[name, peer][1]:.2f}" for ours, peer in pairs)] for name in names]))
    return {"samples": {f"{name}, {kind}": of for (name, kind), of in samples.items()}}
