"""`xfstests`: the tests of that suite for all file systems (`generic`) that need no device. Not a program."""

import concurrent.futures
import contextlib
import os
import pathlib
import pwd
import re
import shlex

from mounts.machine import Skip, Unsupported, run, say
from mounts.mount import Mount, is_mounted, scratch
from mounts.peers import lightfoot
from mounts.runner import JSON, OPTIONS, argument, command, on

LIMIT_S = 60
# Tests with a second file system, or with a device that the first is on.
ELSEWHERE = re.compile(r"_require_(scratch|block_device|dm_|scsi_debug|local_device|log|extra_fs)")

# Tests that cannot pass in a mount, with the reason.
WITHOUT = {"424": "the kernel takes no flags of inodes (chattr) from a FUSE server for statx"}
WITHOUT_IN_FORKS = {}


def need_suite(tree):
    """Raises Skip without the suite; builds it, and makes the users that it acts as, if they are missing."""
    if not (tree / "tests/generic/001").exists():
        raise Skip("no clone of xfstests (--tree DIR)")
    if not (tree / "src/fsync-tester").exists():
        run(["make", "-j2"], 1200, cwd=tree)
    for name in ("fsgqa", "fsgqa2"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            run(["useradd", "--user-group", "--create-home", name])


def chosen(tree, wanted):
    """The numbers of the tests of the group `quick`, or those that are wanted, which need one file system only."""
    groups = dict(line.split(" ", 1) for line in (tree / "tests/generic/group.list").read_text().splitlines() if line[:1].isdigit())
    for number, words in sorted(groups.items()):
        if number in wanted or not wanted and "quick" in words.split():
            if not ELSEWHERE.search((tree / "tests/generic" / number).read_text(errors="replace")):
                yield number


class Place:
    """A file system that the suite mounts and unmounts by itself, at `at`."""

    def __init__(self, kind, options):
        self.is_cut_off, self.mount = False, Mount(kind, options)
        self.at, self.base = self.mount.dir, self.mount.base
        # The program that mount(8) runs for the subtype.
        self.helper = pathlib.Path(f"/sbin/mount.fuse.lightfoot-xfstests-{os.getpid()}-{self.base.name}")
        settings = {"TEST_DIR": self.at, "RESULT_BASE": self.base / "results"}
        if kind == "tmpfs":
            # The suite gives it this name where it has no second file system.
            settings |= {"FSTYP": "tmpfs", "TEST_DEV": "tmpfs_scratch", "TEST_FS_MOUNT_OPTS": "-osize=70%"}
            run(["umount", self.at])
        else:
            if self.mount.kind != "lightfoot-host":
                raise Unsupported("a tree in memory is empty after each mount, and the suite mounts often")
            self.mount.unmount_daemon()
            # The suite unmounts by this name, which must not be a path.
            name = self.helper.suffix[1:]
            self.mount.options = ",".join(filter(None, (self.mount.options, f"fsname={name}")))
            self.write_helper()
            # The suite compares the type that df prints with `fuse`.
            df = self.base / "df"
            df.write_text('#!/bin/sh\ndf -T -P "$@" | sed s/fuse.lightfoot/fuse/\n')
            df.chmod(0o755)
            settings |= {"FSTYP": "fuse", "FUSE_SUBTYP": self.helper.suffix, "DF_PROG": df,
                         "TEST_DEV": name, "TEST_DIR": self.at}
        self.config = self.base / "config"
        self.config.write_text("".join(f"export {name}={shlex.quote(str(value))}\n" for name, value in settings.items()))

    def write_helper(self):
        """Writes the program that mounts. A fork is shown as a mount of its own, and its changes stay from one to the next."""
        words = [*self.mount.words(), "--daemon"]
        # The daemon of the last mount may need a moment to end.
        script = "for n in $(seq 100); do {mount} && break; sleep 0.1; done\n"
        if self.mount.is_fork:
            tree, upper = self.mount.mountpoint, scratch() / f"upper-{self.base.name}"
            self.at = self.base / "t"
            self.at.mkdir()
            words += ["--upper", str(upper)]
            script += f"test -d {tree}/w/f || {lightfoot()} fork {tree} f\nmount --bind {tree}/w/f {self.at} && umount -l {tree}\n"
        self.helper.write_text("#!/bin/sh\n" + script.replace("{mount}", shlex.join(words)))
        self.helper.chmod(0o755)

    def one(self, tree, number):
        """(result, why) of one test: `ok`, `not run` or `failed`."""
        out = self.base / "out"
        with open(out, "w", encoding="utf-8") as file:
            done = run(["timeout", "-k", "5", str(LIMIT_S), "./check", f"generic/{number}"], LIMIT_S + 30, check=False, cwd=tree,
                       env=dict(os.environ, HOST_OPTIONS=str(self.config)), stdout=file)
        text = out.read_text(errors="replace")
        if done.returncode in (124, 137):
            return "failed", f"not at its end after {LIMIT_S} s"
        if skipped := re.search(r"\[not run\] *(.*)", text):
            return "not run", skipped[1]
        return ("ok", "") if "Passed all" in text else ("failed", "\n".join(text.splitlines()[3:40]))

    def results(self, tree, tests):
        return {number: self.one(tree, number) for number in tests if not self.is_cut_off}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        while is_mounted(self.at):
            run(["umount", "-l", self.at])
        self.helper.unlink(missing_ok=True)
        self.mount.down()


def reason(kind, number):
    """The reason of a test that cannot pass in a mount, or None."""
    return WITHOUT.get(number) or (WITHOUT_IN_FORKS.get(number) if "fork" in kind else None)


def counts(results):
    words = [result for result, _ in results.values()]
    return f"{words.count('ok')} pass, {words.count('failed')} fail, {words.count('not run')} are not run of {len(words)}"


def report(kind, results, expected, verdict):
    failed = {number for number, (result, _) in results.items() if result == "failed" and expected[number][0] != "failed"}
    known = {number for number in failed if reason(kind, number)}
    for number in sorted(failed - known):
        verdict.fail(f"{kind}: generic/{number} (tmpfs: {expected[number][0]}): {results[number][1]}")
    verdict.ok(f"{kind}: no other test fails that does not on tmpfs", len(results) - len(failed))
    for number in sorted(known):
        verdict.skip(f"{kind}: generic/{number}: {reason(kind, number)}")
    for number, (result, why) in sorted(results.items()):
        if result == "not run" and expected[number][0] == "ok":
            say(f"  {kind}: generic/{number} is not run: {why}")


@command("xfstests", "10 minutes, and 3 for the first build", on("lightfoot-host,lightfoot-host:fork"),
         argument("--tree", "", "a clone of xfstests"), argument("--tests", "", "only these: 001,002", metavar="NUMBERS"), OPTIONS, JSON)
def xfstests(options, verdict):
    """Runs the quick tests of xfstests for all file systems (`generic`), with tmpfs beside: one that passes there must pass here.

    --tree is a clone of https://git.kernel.org/pub/scm/fs/xfs/xfstests-dev.git. It is built, with the packages that its README
    names. Tests that need a device or a second file system are left out. A test has a minute. The suite mounts and unmounts by
    a helper in /sbin, which is removed afterwards; a fork is kept from one mount to the next by --upper."""
    tree = pathlib.Path(options.tree or "/none").resolve()
    need_suite(tree)
    tests = list(chosen(tree, set(filter(None, options.tests.split(",")))))
    with contextlib.ExitStack() as undo:
        places = {kind: undo.enter_context(Place(kind, options.options)) for kind in ["tmpfs", *options.on.split(",")]}
        # At once: most tests wait for something.
        with concurrent.futures.ThreadPoolExecutor(len(places)) as pool:
            try:
                found = dict(zip(places, pool.map(lambda place: place.results(tree, tests), places.values())))
            except BaseException:  # A signal, too: no further tests.
                for place in places.values():
                    place.is_cut_off = True
                raise
    for kind, results in found.items():
        say(f"{kind}: {counts(results)}")
        if kind != "tmpfs":
            report(kind, results, found["tmpfs"], verdict)
    return {"results": found}
