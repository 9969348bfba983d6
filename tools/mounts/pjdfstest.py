"""`pjdfstest`: the POSIX suite of that name (the crate, 398 cases). Not a program."""

import contextlib
import grp
import json
import os
import pwd
import re
import tempfile

from mounts.machine import run, say
from mounts.mount import Mount, workdir
from mounts.peers import cargo_tool
from mounts.runner import JSON, OPTIONS, argument, command, on

VERSION = "0.2.2"
# Each option that changes how requests come or which side checks.
LIGHTFOOT = (
    "lightfoot-ram,lightfoot-ram:nowriteback+no_open,lightfoot-ram:writeback+locks,lightfoot-host,disk/lightfoot-host,"
    "lightfoot-host:watch,lightfoot-host:writeback,disk/lightfoot-host:exclusive+passthrough,lightfoot-host:fork"
)
# Case names of the suite begin a line; their reasons follow, indented.
CASE = re.compile(r"^(\S+)\s+(ok|FAILED|skipped|failed as expected|PASSED UNEXPECTEDLY)$")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def need_users():
    """The users that the suite acts as. Its groups must be their login groups and have the same names."""
    names = {entry.pw_name for entry in pwd.getpwall()}
    if "tests" not in names:
        run(["useradd", "--system", "--user-group", "--no-create-home", "--shell", "/usr/sbin/nologin", "tests"])
    # The suite wants the login group of its users by name: nogroup on Debian, nobody elsewhere.
    nobody_group = grp.getgrgid(pwd.getpwnam("nobody").pw_gid).gr_name
    return [["nobody", nobody_group], ["tests", "tests"]]


def configuration(path):
    """Writes the suite's configuration to `path`: all that Linux has; the rest (chflags, NFSv4 ACLs) is skipped."""
    entries = ", ".join(json.dumps(entry) for entry in need_users())
    path.write_text(
        "[features]\nposix_fallocate = {}\nrename_ctime = {}\nstat_st_birthtime = {}\nutime_now = {}\nutimensat = {}\n"
        # Seconds that a case waits for the clock of files to go on: 20 ms are 2 ticks at 100 Hz.
        "[settings]\nnaptime = 0.02\nallow_remount = false\n"
        f"[dummy_auth]\nentries = [{entries}]\n"
    )


def suite(directory, config, other_fs, patterns):
    """{case: (result, reason)} of one run in `directory`. `other_fs` is a directory on another file system."""
    words = [cargo_tool("pjdfstest", VERSION), "-c", config, "-p", directory, "-s", other_fs, *patterns]
    environment = dict(os.environ, RUST_BACKTRACE="0")
    done = run(words, 600, check=False, env=environment)
    results, last = {}, None
    for line in COLOUR.sub("", done.stdout).splitlines():
        if match := CASE.match(line):
            last = match[1]
            results[last] = [match[2], ""]
        elif last and line.startswith("\t"):
            results[last][1] = (results[last][1] + " " + line.strip()).strip()
        elif last and line.strip() and not line.startswith("Summary"):
            results[last][1] += " " + line.strip()
    if "Summary" not in done.stdout:
        raise RuntimeError(f"the suite stopped early in {directory}:\n{done.stdout[-2000:]}")
    return results


def counts(results):
    words = [result for result, _ in results.values()]
    return f"{words.count('ok')} pass, {words.count('FAILED')} fail, {words.count('skipped')} skip of {len(words)}"


def report(name, results, references, verdict):
    """Reports what one file system has and no reference."""
    failed = verdict.failed
    for case, (result, reason) in sorted(results.items()):
        there = {reference: of.get(case, ["ok"])[0] for reference, of in references.items()}
        if result in ("FAILED", "PASSED UNEXPECTEDLY"):
            if also := [reference for reference, of in there.items() if of != "ok"]:
                say(f"  as on {', '.join(also)}: {case}: {reason[:300]}")
            else:
                verdict.fail(f"{name}: {case}: {reason[:300]}")
        elif result == "skipped" and set(there.values()) == {"ok"}:
            verdict.fail(f"{name}: {case} is skipped, and passes on tmpfs and the disk")
    if verdict.failed == failed:
        verdict.ok(f"{name}: {counts(results)}", len(results))


@command("pjdfstest", "2 to 3 minutes, and 1 minute for the first build",
         argument("dir", None, "a directory on the file system in question, in place of mounts", nargs="?"), on(LIGHTFOOT), OPTIONS,
         argument("--skipped", False, "list the skipped cases with the suite's reasons"),
         argument("--only", [], "cases whose name has this; may be repeated", metavar="PATTERN"), JSON)
def pjdfstest(options, verdict):
    """Runs pjdfstest on mounts of Lightfoot, or a directory, and on tmpfs and a disk's file system beside it.

    A case fails if it fails here and on neither of those, or is skipped here and passes on both. The suite acts as the users
    nobody and tests; tests is made if it is not there."""
    config, everything = workdir() / "pjdfstest.toml", {}
    configuration(config)
    with Mount("tmpfs") as tmpfs, Mount("disk") as disk:
        references = {"tmpfs": suite(tmpfs.dir, config, disk.dir, options.only), "disk": suite(disk.dir, config, tmpfs.dir, options.only)}
        for kind in [options.dir] if options.dir else options.on.split(","):
            with contextlib.ExitStack() as undo:
                if options.dir:
                    at = undo.enter_context(tempfile.TemporaryDirectory(prefix="pjdfstest-", dir=options.dir))
                    os.chmod(at, 0o755)
                else:
                    at = undo.enter_context(Mount(kind, options.options)).dir
                is_tmpfs = os.stat(at).st_dev == os.stat(tmpfs.dir).st_dev
                everything[kind] = suite(at, config, disk.dir if is_tmpfs or not options.dir else tmpfs.dir, options.only)
    for name, results in references.items():
        say(f"{name}: {counts(results)}")
    for name, results in everything.items():
        report(name, results, references, verdict)
        for case, (result, reason) in sorted(results.items()):
            if options.skipped and result == "skipped":
                say(f"  {case}: {reason}")
    return {"results": {**references, **everything}}
