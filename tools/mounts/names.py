"""`names`: resident memory of each daemon by names that the kernel knows. Not a program."""

import resource
import subprocess
import time

from mounts.figures import KINDS
from mounts.load import load
from mounts.machine import drop_caches, facts_line, run, say, table
from mounts.mount import Mount
from mounts.runner import JSON, OPTIONS, argument, command, on


def settled_rss(mount):
    """The daemon's resident memory once it has stopped changing."""
    last, same, end = -1, 0, time.monotonic() + 20
    while same < 5 and time.monotonic() < end:
        now = mount.rss_bytes()
        same = same + 1 if abs(now - last) < 65536 else 0
        last = now
        time.sleep(0.2)
    return last


def memory_of(kind, count, options):
    """One daemon's memory in bytes over the life of a tree of `count` names."""
    with Mount(kind, options.options) as mount:
        row = {"empty": settled_rss(mount)}
        tree = (mount.backing or mount.dir) / "tree"
        tree.mkdir()
        load(mount, "make", tree, count // 1000, 1000)
        row["made"] = settled_rss(mount)
        start = time.monotonic()
        done = run(["find", mount.dir / "tree", "-type", "f", "-size", "-1k"], 900, check=False, stderr=subprocess.PIPE)
        row["seconds"] = time.monotonic() - start
        assert done.stdout.count("\n") == count, f"find saw {done.stdout.count(chr(10))} of {count}: {done.stderr[:300]}"
        row |= {"found": settled_rss(mount), "files": mount.open_files()}
        drop_caches(2)
        drop_caches(2)
        return row | {"dropped": settled_rss(mount), "files left": mount.open_files()}


@command("names", "3 minutes", argument("names", 200_000, "how many", nargs="?"), on(KINDS), OPTIONS, JSON)
def names(options, verdict):
    """Measures the resident memory of each daemon by names that the kernel knows.

    What a mirror is charged with is all that came after mounting; of ram:, what find added to the tree itself."""
    hard, results = resource.getrlimit(resource.RLIMIT_NOFILE)[1], {}
    rows = [["daemon", "names", "MiB: empty", "after making", "after find", "after drop_caches 2", "bytes a name", "left",
             "open files", "left", "find, s"]]
    for kind in options.on.split(","):
        if kind.rpartition("/")[2] in ("tmpfs", "disk", "null"):
            continue
        # It holds a descriptor for each.
        limit = hard - 2000 if "passthrough_hp" in kind else options.names
        count = max(1, min(options.names, limit) // 1000) * 1000
        with verdict.catch(kind):
            row = results[kind] = memory_of(kind, count, options)
            base = row["made" if "lightfoot-ram" in kind else "empty"]
            rows.append([kind, f"{count:,}", *(f"{row[key] / 1048576:.1f}" for key in ("empty", "made", "found", "dropped")),
                         f"{(row['found'] - base) / count:.0f}", f"{(row['dropped'] - base) / count:.0f}", row["files"],
                         row["files left"], f"{row['seconds']:.2f}"])
            verdict.ok(kind)
    say(table(rows))
    say(f"\n{facts_line()}; passthrough_hp is cut to what the limit of {hard} open files allows")
    return {"results": results}
