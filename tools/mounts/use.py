"""`smoke` and `matrix`: mounts used as people use them, compared with tmpfs. Not a program."""

import atexit
import codecs
import collections
import multiprocessing
import multiprocessing.popen_fork
import os
import pathlib
import stat

from mounts import checks
from mounts.actors import ROOT, Actor, User
from mounts.effects import check_effects
from mounts.machine import Unsupported, need_program, run, say
from mounts.mount import Mount, as_user, is_mounted, plain, scratch, workdir
from mounts.peers import lightfoot
from mounts.runner import LIST, OPTIONS, argument, command, description, on

# Known by name, which fusermount3 needs.
NOBODY = User("nobody", 65534, 65534, ())
# How many mounts are checked at once.
AT_ONCE = 3
LIMIT_S_A_DIRECTORY = 150
SMOKE = "lightfoot-ram,lightfoot-host,lightfoot-ram:nosuid+nodev,lightfoot-host:nosuid+nodev"
ONLY = argument("--only", "", "only checks whose name has this word", metavar="WORD")

CHECKS = [(name, checks.shell, (script,)) for name, script in checks.ORDINARY]
CHECKS += [(name, function, ()) for name, function in checks.PROGRAMS]

# `mount`: a function that yields the directories to check. `lacks`: checks that cannot pass.
Row = collections.namedtuple("Row", "name user mount lacks")

# What cannot pass where only the user who mounted sees the mount.
ONLY_OWNER = {"permissions of another user", "ACLs, by setfacl, tar and rsync"}


def of_root(kind, options=""):
    def mount():
        with Mount(kind, options) as mounted:
            yield [mounted.dir]

    return Row(kind, ROOT, mount, ONLY_OWNER if "own_permissions" in kind + options else set())


def open_device():
    """Lets users open /dev/fuse, as udev does on Debian, until the script ends."""
    before = stat.S_IMODE(os.stat("/dev/fuse").st_mode)
    if before & 0o006 != 0o006:
        os.chmod("/dev/fuse", before | 0o666)
        atexit.register(os.chmod, "/dev/fuse", before)


def of_user(source, options=""):
    """A mount of nobody's, through fusermount3."""

    def mount():
        need_program("fusermount3", "fuse3")
        open_device()
        with plain(source, options, before=as_user(NOBODY.uid), owner=NOBODY.uid) as mounted:
            yield [mounted.dir]

    return Row(f"a user's {'ram' if source == 'ram:' else 'host'}, by fusermount3: {options or 'default'}", NOBODY, mount, set())


def file_of_mounts():
    """A tree in memory, with a directory, a tree with limits, and a tree below the directory."""
    base = workdir() / "file-of-mounts"
    for name in ("host/inner", "m"):
        (base / name).mkdir(parents=True)
    places = (("/", "ram:"), ("/h", "host"), ("/limited", "ram:size=200m,nr_inodes=50k"), ("/h/inner", "ram:"))
    text = "".join(f'[[mount]]\nat = "{at}"\nsource = "{source}"\n' for at, source in places)
    (base / "tree.toml").write_text(text)
    with plain(base / "tree.toml", "allow_other,suid,dev") as mounted:
        yield [mounted.dir / at.lstrip("/") for at, _ in places]


def mount_in_a_mount():
    """A tree in memory on a directory of a mount of Lightfoot, and a mount whose source is in the first."""
    with Mount("lightfoot-ram") as outer:
        (outer.dir / "source").mkdir()
        with (plain("ram:", "allow_other,suid,dev", mountpoint=outer.dir / "m") as inner,
              plain(outer.dir / "source", "allow_other,suid,dev") as of):
            yield [inner.dir, of.dir, outer.dir]
        checks.equal([], os.listdir(outer.dir / "m"))


def by_fstab():
    """`mount -a`, with lightfoot as the helper mount.lightfoot."""
    base = workdir() / "fstab"
    for name in ("source", "r", "h"):
        (base / name).mkdir(parents=True)
    helper = pathlib.Path("/sbin/mount.lightfoot")
    if helper.exists() or helper.is_symlink():
        raise Unsupported(f"{helper} is there already")
    helper.symlink_to(lightfoot())
    (base / "tab").write_text(
        f"ram:size=300m {base}/r lightfoot allow_other,suid,dev,noauto 0 0\n"
        f"{base}/source {base}/h lightfoot defaults,allow_other,suid,dev,nofail,x-note 0 0\n")
    try:
        run(["mount", "--fstab", base / "tab", "-a"], 30)
        assert is_mounted(base / "h") and not is_mounted(base / "r"), "mount -a takes what is not noauto"
        run(["mount", "--fstab", base / "tab", base / "r"], 30)
        yield [base / "r", base / "h"]
    finally:
        for name in ("r", "h"):
            run(["umount", base / name], 20, check=False)
        helper.unlink()


ROWS = [of_root("lightfoot-ram" + options) for options in ("", ":writeback", ":nowriteback", ":locks", ":no_open", ":own_permissions")]
ROWS += [of_root("lightfoot-host" + options) for options in (
    "", ":writeback", ":watch", ":passthrough", ":exclusive+locks", ":always", ":cache=4m", ":own_permissions", ":fork",
    ":exclusive+fork")]
ROWS += [
    of_root("disk/lightfoot-host"),
    of_root("disk/lightfoot-host:exclusive+passthrough"),
    of_user("ram:"),
    of_user("ram:", "own_permissions"),
    of_user("{source}"),
    of_user("{source}", "own_permissions"),
    Row("a file of mounts", ROOT, file_of_mounts, set()),
    Row("a mount in a mount", ROOT, mount_in_a_mount, set()),
    Row("mount -a", ROOT, by_fstab, set()),
]


# ---- the checks of one directory ----


def result_of(function, arguments):
    """`ok`, `SKIPPED: why` or `FAILED: what`."""
    try:
        function(*arguments)
    except Unsupported as why:
        return f"SKIPPED: {why}"
    except Exception as error:  # What a check meets is what it reports.
        return f"FAILED: {description(error)}"
    return "ok"


def check_directories(_pause, user, directories, chosen):
    """{check: result} in a new directory below each of the directories."""
    if user.uid != 0:
        os.environ["HOME"] = str(scratch())
    checks.prepare()
    all_results = []
    for directory in directories:
        results = {}
        for number, (name, function, more) in enumerate(chosen):
            at = directory / f"c{number}"
            at.mkdir()
            results[name] = result_of(function, (*more, at))
        all_results.append(results)
    return all_results


def worker(user, directories, chosen):
    """A process of the user that runs the checks in some directories, one after another."""
    # What Python loads late may be in root's home directory.
    multiprocessing.get_context("fork").SimpleQueue()
    codecs.lookup("ascii")
    return Actor(user, check_directories, user, directories, chosen, limit_s=LIMIT_S_A_DIRECTORY * len(directories))


def references(users, chosen):
    """What passes on tmpfs, by user."""
    found = {}
    # Before the workers, which find it there.
    scratch()
    for user in users:
        with Mount("tmpfs") as tmpfs:
            at = tmpfs.dir / "d"
            at.mkdir()
            os.chown(at, user.uid, user.gid)
            found[user.name] = worker(user, [at], chosen).result()[0]
    broken = [f"{name}: {result}" for name, result in found["root"].items() if result.startswith("FAILED")]
    if broken:
        raise RuntimeError(f"on tmpfs fails {broken[0]}")
    return found


def compare(row, reference, results, verdict):
    """A check that passes on tmpfs must pass here; one that is skipped here and passes there is a failure."""
    before, passed, same = verdict.failed, 0, set()
    for at, found in enumerate(results):
        for name, result in found.items():
            if result == "ok":
                passed += 1
            elif reference[name] != "ok":
                same.add(name)
            elif name not in row.lacks:
                verdict.fail(f"{row.name}: {name}{f' in directory {at}' if at else ''}: {result}, passes on tmpfs")
    if verdict.failed == before:
        more = f"; as on tmpfs: {', '.join(sorted(same))}" if same else ""
        more += f"; left out: {', '.join(sorted(row.lacks))}" if row.lacks else ""
        verdict.ok(f"{row.name}: {passed} checks{more}", passed)


def run_rows(rows, chosen, verdict):
    need_program("git")
    lightfoot()
    reference, running = references({ROOT, *(row.user for row in rows)}, chosen), []

    def finish():
        row, steps, checking = running.pop(0)
        with verdict.catch(row.name):
            compare(row, reference[row.user.name], checking.result(), verdict)
            next(steps, None)

    for row in rows:
        with verdict.catch(row.name):
            steps = row.mount()
            running.append((row, steps, worker(row.user, next(steps), chosen)))
        if len(running) >= AT_ONCE:
            finish()
    while running:
        finish()


@command("smoke", "About 1 minute", on(SMOKE), OPTIONS, ONLY)
def smoke(options, verdict):
    """Uses a few mounts as people do: shell scripts, git, tar, find, storms of renames.

    A check that passes on tmpfs must pass on the mount, and one that is skipped only on the mount fails."""
    chosen = [check for check in CHECKS if options.only in check[0]]
    run_rows([of_root(kind, options.options) for kind in options.on.split(",")], chosen, verdict)


@command("matrix", "About 2 minutes", argument("--on", "", "only mounts whose name has this word", metavar="WORD"), ONLY, LIST)
def matrix(options, verdict):
    """Uses a mount of each way in docs/mounting.md (users, sources, options), as `smoke` without its storms.

    Options whose effect no Rust test shows are tried too. It fails if an option in the table of docs/mounting.md has neither."""
    rows = [row for row in ROWS if options.on in row.name]
    if options.list:
        say("\n".join(row.name for row in rows))
        return
    if options.on in "options":
        check_effects(options.only, verdict)
    if rows:
        run_rows(rows, [check for check in CHECKS if options.only in check[0] and "storm" not in check[0]], verdict)
