"""`figures`: names, creations, untar, git status and files on mounts of Lightfoot and of others. Not a program."""

import collections
import io
import os
import random
import shutil
import statistics
import tarfile

from mounts.load import load, measured
from mounts.machine import drop_caches, facts_line, need_program, run, say, table
from mounts.mount import Mount
from mounts.peers import TOOLS
from mounts.runner import JSON, OPTIONS, argument, command, on

KINDS = "tmpfs,null,passthrough_hp,passthrough_hp-new,bindfs,lightfoot-ram,lightfoot-host"
PEERS = ("passthrough_hp", "passthrough_hp-new", "bindfs")
DIRS, FILES = 100, 100
NS, MS, MIB_S = "ns", "ms", "MiB/s"


def source_tar():
    """An archive of a tree like a program's source: 8,000 files of 0 to 40 KiB."""
    path, dice = TOOLS / "generated.tar", random.Random(1)
    if not path.exists():
        TOOLS.mkdir(parents=True, exist_ok=True)
        with tarfile.open(path, "w") as tar:
            for at in range(8000):
                member = tarfile.TarInfo(f"tree/d{at % 40:02}/s{at % 400:03}/f{at:05}.c")
                member.size = min(40960, int(dice.lognormvariate(8, 1.3)))
                tar.addfile(member, io.BytesIO(dice.randbytes(64) * (member.size // 64 + 1)))
    return path


def make_repository(at):
    """A repository of 10,000 files in `at`, its index fresh."""
    shell = """
        git init -q . && for d in $(seq 100); do mkdir s$d; for f in $(seq 100); do echo "$d $f" >s$d/f$f.txt; done; done
        git add . && git -c user.name=a -c user.email=a@example.org commit -qm all && sleep 1.1 && git status --short
    """
    run(["bash", "-ec", shell], 300, cwd=at)


class Bench:
    """One mount, and the samples of all: {(row, unit): {mount: [(value, processor time in ms)]}}."""

    def __init__(self, mount, samples, creates, mib):
        self.mount, self.samples, self.creates, self.mib = mount, samples, creates, mib

    def add(self, row, unit, value, cpu_s):
        self.samples[row, unit][self.mount.name].append((value, round(cpu_s * 1000, 3)))

    def load(self, row, unit, *words):
        self.add(row, unit, *load(self.mount, *words))

    def time(self, row, words, **more):
        _, seconds, cpu_s = measured(self.mount, words, **more)
        self.add(row, MS, seconds * 1000, cpu_s)


# ---- the groups of rows ----


def names(bench):
    tree = bench.mount.dir / "d-tree"
    stat = lambda row, procs, *more: bench.load(row, NS, "stat", tree, DIRS, FILES, procs, *more)  # noqa: E731
    if bench.mount.kind != "lightfoot-ram":
        stat("stat, after mounting", 1)
        stat("stat, absent, first time", 1, "absent")
    drop_caches(2)
    stat("stat, after drop_caches 2", 1)
    stat("stat, warm", 1)
    stat("stat, warm, 2 processes", 2)
    load(bench.mount, "stat", tree, DIRS, FILES, 1, "absent")
    stat("stat, absent, again", 1, "absent")
    drop_caches(2)
    stat("stat, 2 processes, after drop_caches 2", 2)
    if bench.mount.kind != "null":
        drop_caches(2)
        bench.time("find -size of 10,000, after drop_caches 2", ["find", tree, "-size", "+1k"])
        bench.time("find -size of 10,000, warm", ["find", tree, "-size", "+1k"])


def creations(bench):
    for where in ("one", "own"):
        for procs in (1, 2, 4):
            base = bench.mount.dir / f"d-create-{where}-{procs}"
            base.mkdir(exist_ok=True)
            title = f"by {procs} in {'one directory' if where == 'one' else 'own directories'}"
            for what in ("create", "unlink"):
                bench.load(f"{what} {title}", NS, what, base, bench.creates, procs, where)
            shutil.rmtree(base, ignore_errors=bench.mount.kind == "null")


def untar(bench):
    if bench.mount.kind == "null":
        return
    out = bench.mount.dir / "untar"
    out.mkdir()
    bench.time("untar of a source tree", ["tar", "xf", source_tar(), "-C", out])
    drop_caches(2)
    bench.time("tar of it to /dev/null, after drop_caches 2", f"tar cf - -C '{out}' . | cat >/dev/null")
    bench.time("rm -r of it", ["rm", "-r", out])


def git(bench):
    if bench.mount.kind == "null":
        return
    status = ["git", "-C", bench.mount.dir / "repository", "status", "--short"]
    environment = dict(os.environ, GIT_OPTIONAL_LOCKS="0")
    # A mount of other device numbers: let git note the new ones first.
    run(status)
    bench.time("git status of 10,000 files, warm", status, env=environment)
    drop_caches(2)
    bench.time("git status of 10,000 files, after drop_caches 2", status, env=environment)


def files(bench):
    if bench.mount.kind == "null":
        return
    file = bench.mount.dir / "file"
    bench.load("write, sequential, 128 KiB", MIB_S, "write", file, bench.mib, 131072)
    drop_caches(1)
    bench.load("read, sequential, 128 KiB, after drop_caches 1", MIB_S, "read", file, bench.mib, 131072)
    bench.load("read, random, 4 KiB, warm", MIB_S, "randread", file, bench.mib, 4096)
    drop_caches(1)
    bench.load("read, random, 4 KiB, after drop_caches 1", MIB_S, "randread", file, bench.mib, 4096)
    bench.load("write, random, 4 KiB", MIB_S, "randwrite", file, bench.mib, 4096)
    file.unlink()


GROUPS = {group.__name__: group for group in (names, creations, untar, git, files)}


def prepare(mount):
    """Puts the standing trees in place: behind a mirror's back, for each group mounts it anew."""
    if mount.kind != "null":
        base = mount.backing or mount.dir
        for name in ("d-tree", "repository"):
            (base / name).mkdir()
        load(mount, "make", base / "d-tree", DIRS, FILES)
        make_repository(base / "repository")


def in_turn(items, rounds):
    """(round, item) of all rounds, each in another order."""
    for number in range(rounds):
        for at in range(len(items)):
            yield number, items[(at + number) % len(items)]


def measure(mounts, options, verdict):
    """The samples of all rounds."""
    samples = collections.defaultdict(lambda: collections.defaultdict(list))
    creates, mib = (500, 64) if options.quick else (2000, 256)
    for name in options.only or GROUPS:
        for number, mount in in_turn(mounts, options.rounds):
            with verdict.catch(f"{name} on {mount.name}"):
                if mount.backing is not None:
                    mount.remount()
                GROUPS[name](Bench(mount, samples, creates, mib))
                verdict.ok(f"{name} on {mount.name}, round {number + 1}")
                continue
            # What it left.
            for left in ("untar", "file", *(f"d-create-{where}-{procs}" for where in ("one", "own") for procs in (1, 2, 4))):
                run(["rm", "-rf", (mount.backing or mount.dir) / left], check=False)
    return samples


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def print_tables(samples, kinds):
    medians = {row: {kind: [statistics.median(part) for part in zip(*of[kind])] for kind in kinds if kind in of}
               for row, of in samples.items()}

    def ratio(unit, of, one, other, part=0):
        """A time of `one` to that of `other`: less is better, for rates too."""
        ratio = of[one][part] / of[other][part] if of[other][part] else float("nan")
        return 1 / ratio if unit == MIB_S and part == 0 and ratio else ratio

    def rows(part):
        yield ["", *kinds]
        for (row, unit), of in medians.items():
            cell = lambda kind: number(of[kind][part]) + (  # noqa: E731,B023
                f" ({ratio(unit, of, kind, 'tmpfs', part):.1f}×)" if "tmpfs" in of and kind != "tmpfs" else "")  # noqa: B023
            yield [f"{row} [{'ms' if part else unit}]", *(cell(kind) if kind in of else "-" for kind in kinds)]

    say(table(rows(0)))
    pairs = [(one, other) for one in kinds if "lightfoot" in one for other in kinds if other.rpartition("/")[2] in PEERS]
    if pairs:
        say("\nOurs to the others' (below 1: ours is faster):\n")
        say(table([["", *map(" / ".join, pairs)]] + [
            [row, *(f"{ratio(unit, of, *pair):.2f}" if set(pair) <= set(of) else "-" for pair in pairs)]
            for (row, unit), of in medians.items()]))
    say("\nProcessor time of the client and the daemon together (the row's whole work):\n")
    say(table(rows(1)))


@command("figures", "15 minutes, 4 with --quick, and 3 for the first build of the peers", on(KINDS), OPTIONS,
         argument("--pin", None, "keep clients and daemons on these processors: CPU[,CPU]", metavar="CPUS"),
         argument("--quick", False, "less work in each row"), argument("--rounds", 3, "of which the median is taken"),
         argument("--only", [], "groups of rows; may be repeated", choices=GROUPS), JSON)
def figures(options, verdict):
    """Measures names, creations, untar, git status and files: medians of interleaved rounds.

    All are mounted for the whole run; each round takes them in another order. Mirrors are mounted anew before each group of
    rows: passthrough_hp holds a descriptor for each name that the kernel knows, and hard limits may be low. The ratios are of
    medians, a mount's time to tmpfs's (for MiB/s the other way around), so that less is better in all of them. The tables are
    Markdown. The last one has the processor time of client and daemon, which suffers less if something else runs.
    With --pin to one processor, a request costs no wake-up across processors, which on a virtual machine varies by more than what
    is compared."""
    need_program("git")
    if options.pin:
        os.sched_setaffinity(0, {int(cpu) for cpu in options.pin.split(",")})
    kinds = options.on.split(",")
    mounts = [Mount(kind, options.options) for kind in kinds]
    for mount in mounts:
        prepare(mount)
    samples = measure(mounts, options, verdict)
    print_tables(samples, kinds)
    say(f"\n{facts_line()}; medians of {options.rounds} rounds; stat of {DIRS * FILES:,} names"
        + (f"; all on processors {options.pin}" if options.pin else ""))
    return {"rows": [{"row": row, "unit": unit, "samples": of} for (row, unit), of in samples.items()]}
