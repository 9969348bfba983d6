"""`try`: programs in `lightfoot try`, in directories of other file systems. Not a program."""

import contextlib
import hashlib
import os
import pathlib
import pty
import select
import shutil
import signal
import stat
import time

from mounts.build import generate
from mounts.checks import equal, equal_lists
from mounts.machine import Skip, run, wait_for
from mounts.mount import Mount, as_user, scratch, workdir
from mounts.peers import lightfoot
from mounts.runner import argument, command, on
from mounts.use import NOBODY, open_device

LIMIT_S = 120
# An overlay has the projects in its lower directory.
PLACES = "ext4,xfs,btrfs,tmpfs,overlay"
OF_USERS = ("ext4", "tmpfs")

GIT = """
git init -q -b main . && git add -A && git commit -qm first && seq 5000 > many && mkdir d && echo d > d/f && git add -A
git commit -qm second && git checkout -qb side HEAD~1 && git mv 1.txt moved && git commit -qam third && git checkout -q main
git merge -qm merged side && git gc -q --prune=now && git fsck --full --strict && test -z "$(git status --porcelain)"
"""

SHELL = """
mv moved kept/there; mv kept/there/deep deeper; rm -r removed; mkdir removed; echo new > removed/new; echo more >> kept/hard
mv swapped aside; mv deeper swapped; mv aside deeper; chmod 711 kept; chmod 755 kept/deep/3; chmod 600 kept/deep/4
ln kept/deep/5 hard; ln -s kept/deep soft; rm kept/soft; mkdir kept/soft; mkfifo fifo; truncate -s 3 kept/deep/6
truncate -s 10M kept/sparse; printf x | dd of=kept/sparse bs=1 seek=500000 conv=notrunc status=none; cp -a kept copy
tar cf all.tar copy; rm -r copy; tar xf all.tar; rm all.tar; touch -d 2001-02-03T04:05:06.7 kept/deep/7; sed -i s/kept/edited/ kept/deep/8
mkdir -p -m 2770 new/a/b; chmod 555 new/a; echo 1 > 'new/odd
name'; for i in $(seq 3000); do echo $i > new/f$i; done; rm new/f1*; find . -name '1?' -delete
"""

# Writers of one database, at once or one after the other. The last one ends without closing it, so a log or a journal stays.
DATABASE = """
import os, sqlite3, sys
path, mode, start, rows = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
database = sqlite3.connect(path, timeout=60, isolation_level=None)
assert database.execute(f"PRAGMA journal_mode={mode}").fetchone()[0] == mode.lower()
database.execute("PRAGMA synchronous=NORMAL")
database.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, text)")
for n in range(start, start + rows):
    database.execute("BEGIN IMMEDIATE")
    database.execute("INSERT INTO t VALUES (?, ?)", (n, str(n) * 200))
    if n % 5 == 0:
        database.execute("UPDATE t SET text = 'changed' WHERE n = ?", (n - 1,))
    database.execute("ROLLBACK" if n % 7 == 0 else "COMMIT")
assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
os._exit(0)
"""
SQLITE = "for mode in WAL DELETE; do for path in new-$mode old-$mode; do " + """
    python3 write.py $path $mode 0 1
    python3 write.py $path $mode 1000 200 & one=$!; python3 write.py $path $mode 2000 200 & two=$!; wait $one; wait $two
    python3 write.py $path $mode 3000 100
done; done"""
DUMP = """
import sqlite3, sys
for path in ("new-WAL", "old-WAL", "new-DELETE", "old-DELETE"):
    database = sqlite3.connect(path)
    print(path, database.execute("PRAGMA integrity_check").fetchone()[0], *database.iterdump(), sep="\\n")
"""


def make_git(at):
    for number in range(40):
        (at / f"{number}.txt").write_text(f"{number}\n" * 200)


def make_cargo(at):
    for name, of, text in (
        ("part", "part", "pub fn sum(to: u64) -> u64 { (1..=to).sum() }\n"),
        ("whole", ".", 'fn main() { println!("{}", part::sum(100)); }\n'),
    ):
        source = at / of / "src"
        source.mkdir(parents=True)
        needs = '[dependencies]\npart = { path = "part" }\n' if of == "." else ""
        (at / of / "Cargo.toml").write_text(f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n{needs}')
        (source / ("main.rs" if of == "." else "lib.rs")).write_text(text)


def make_shell(at):
    for name in ("kept", "moved", "removed", "swapped"):
        (at / name / "deep").mkdir(parents=True)
        for number in range(20):
            (at / name / f"deep/{number}").write_text(f"{name} {number}\n" * 100)
    os.link(at / "kept/deep/1", at / "kept/hard")
    (at / "kept/soft").symlink_to("deep/2")
    (at / "kept/sparse").write_bytes(b"begin" + bytes(1 << 20) + b"end")


def make_npm(at):
    for name, needs in (("packed", "{}"), ("linked", '{"packed": "file:../packed"}')):
        (at / name / "lib").mkdir(parents=True)
        (at / name / "package.json").write_text(f'{{"name": "{name}", "version": "1.0.0", "dependencies": {needs}}}\n')
        (at / name / "index.js").write_text(f"module.exports = '{name}' + require('./lib/more.js');\n")
        for number in range(200):
            (at / name / f"lib/{number}.js").write_text(f"module.exports = {number};\n")
        (at / name / "lib/more.js").write_text("module.exports = require('./7.js');\n")
    (at / "package.json").write_text('{"name": "top", "version": "1.0.0"}\n')


def make_sqlite(at):
    (at / "write.py").write_text(DATABASE)
    (at / "dump.py").write_text(DUMP)
    for mode in ("WAL", "DELETE"):
        run(["python3", "write.py", f"old-{mode}", mode, "1", "100"], 60, cwd=at)


# name: (programs that it needs, what makes the files before, the command, the check of the result, names that differ between two runs)
PROGRAMS = {
    "git": (["git"], make_git, GIT, "git fsck --full --strict && git diff --exit-code && test -z \"$(git status --porcelain)\"", ["index"]),
    "cargo": (["cargo"], make_cargo, "cargo build -q --offline && cargo run -q --offline | grep -qx 5050",
              "target/debug/whole | grep -qx 5050 && ! cargo build --offline 2>&1 | grep Compiling", ["target"]),
    "make": (["make", "gcc"], lambda at: generate(at, 30), "make -s -j4 && ./program > output",
             "./program | cmp - output && make | grep -q 'Nothing to be done'", []),
    "shell": (["sh"], make_shell, SHELL, 'test "$(stat -c %h kept/hard hard kept/deep/7 | xargs)" = "2 2 1" && test -p fifo', ["fifo"]),
    "npm": (["npm"], make_npm, "npm pack --silent ./packed && npm install --silent ./packed-1.0.0.tgz && npm install --silent ./linked",
            "node -e \"process.exit(require('packed') + require('linked') == 'packed7linked7' ? 0 : 1)\" && test -L node_modules/linked", []),
    "sqlite": (["python3"], make_sqlite, SQLITE, "python3 dump.py > dump && ! grep -qx 'integrity.*' dump", ["old-*", "new-*"]),
}


@contextlib.contextmanager
def toolchain():
    """The directory of the programs of Rust, where every user may read it; None without them."""
    at = workdir() / "rust"
    if not shutil.which("rustc"):
        yield None
        return
    at.mkdir()
    run(["mount", "--bind", "-o", "ro", run(["rustc", "--print", "sysroot"], stderr=None).stdout.strip(), at])
    try:
        yield at / "bin"
    finally:
        run(["umount", "-l", at], check=False)


def environment(uid, rust):
    """That of a user with an own home, where programs do the same at each run."""
    home = scratch() / f"home-{uid}"
    home.mkdir(exist_ok=True)
    os.chown(home, uid, uid)
    paths = [*([str(rust)] if rust else []), "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"]
    of_git = {f"GIT_{who}_{what}": text for who in ("AUTHOR", "COMMITTER")
              for what, text in (("NAME", "a"), ("EMAIL", "a@example.org"), ("DATE", "2026-01-02T03:04:05Z"))}
    settings = {"pack.threads": "1", "gc.auto": "0", "safe.directory": "*"}
    for number, (name, value) in enumerate(settings.items()):
        of_git |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {"PATH": ":".join(paths), "HOME": str(home), "LANG": "C.UTF-8", "GIT_CONFIG_COUNT": str(len(settings)),
            "npm_config_offline": "true", "npm_config_audit": "false", "npm_config_fund": "false",
            "npm_config_update_notifier": "false", **of_git}


def everything(top):
    """A line for each file of a tree: path, all attributes but the time of access, and a digest of the contents."""
    lines = []
    for path in [top, *sorted(top.rglob("*"))]:
        of = path.lstat()
        body = os.readlink(path) if stat.S_ISLNK(of.st_mode) else None
        if stat.S_ISREG(of.st_mode):
            body = hashlib.sha256(path.read_bytes()).hexdigest()
        lines.append(repr((str(path.relative_to(top)), of.st_ino, oct(of.st_mode), of.st_nlink, of.st_uid, of.st_gid, of.st_size,
                           of.st_mtime_ns, of.st_ctime_ns, body)))
    return lines


def outline(top, without):
    """A line for each file of a tree but those of some names: what two runs of a program have in common."""
    names = [word for name in without for word in ("-name", name, "-prune", "-o")]
    return run(["find", top, *names, "-printf", r"%P %y %m %l\n"]).stdout.splitlines()


def places_mounted(top):
    """Mounts at or below a directory, in the namespaces of all processes."""
    found = set()
    for table in pathlib.Path("/proc").glob("[0-9]*/mountinfo"):
        with contextlib.suppress(OSError):
            found |= {line.split()[4] for line in table.read_text(errors="replace").splitlines()}
    return [at for at in sorted(found) if at == str(top) or at.startswith(f"{top}/")]


def interrupted(words, at, env, ready):
    """The exit status of a command on a terminal of its own, where Ctrl-C is typed soon after it has made the file `ready`."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(at)
        os.execvpe(words[0], words, env)
    shown, typed, end = b"", False, time.monotonic() + LIMIT_S
    try:
        while time.monotonic() < end:
            if not typed and ready.exists():
                time.sleep(0.2)
                os.write(terminal, b"\x03")
                typed = True
            if select.select([terminal], [], [], 0.05)[0]:
                try:
                    shown += os.read(terminal, 65536)
                except OSError:  # The other side has been closed.
                    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise AssertionError(f"it goes on {LIMIT_S} s after Ctrl-C: {shown[-500:].decode(errors='replace')}")
    finally:
        os.close(terminal)


class Case:
    """One program in one directory, as one user."""

    def __init__(self, at, name, uid, env):
        self.at, self.name, self.uid, self.env = at, name, uid, env
        _, _, self.script, self.check, self.own_names = PROGRAMS[name]
        self.as_self = as_user(uid) if uid else []

    def words(self, option, script):
        return [*self.as_self, str(lightfoot()), "try", option, str(self.at), "--", "sh", "-ec", script]

    def trial(self, option):
        run(self.words(option, self.script), LIMIT_S, cwd=self.at, env=self.env)

    def nothing_mounted(self):
        if not wait_for(lambda: not places_mounted(self.at), 10):
            raise AssertionError(f"still mounted: {places_mounted(self.at)}")

    def unchanged(self, before):
        self.nothing_mounted()
        equal_lists(before, everything(self.at))

    def run(self, plain):
        """Drops, is interrupted, and applies; the result is that in `plain`, where the same ran without `try`."""
        before = everything(self.at)
        self.trial("--drop")
        self.unchanged(before)
        ready = scratch() / f"ready-{self.name}-{self.uid}"
        ready.unlink(missing_ok=True)
        status = interrupted(self.words("--apply", f"touch {ready}; {self.script}\nexec sleep {LIMIT_S}"), self.at, self.env, ready)
        equal(130, status)
        self.unchanged(before)
        self.trial("--apply")
        self.nothing_mounted()
        words = ["diff", "-r", "--no-dereference", *(f"--exclude={name}" for name in self.own_names), plain, self.at]
        run(words, LIMIT_S)
        equal_lists(outline(plain, self.own_names), outline(self.at, self.own_names))
        run([*self.as_self, "sh", "-ec", self.check], LIMIT_S, cwd=self.at, env=self.env)


def prepare(name, env):
    """Makes the files of a program, and what it makes of them without `try`, if the machine has it."""
    needs, make, script, *_ = PROGRAMS[name]
    for program in needs:
        if not shutil.which(program, path=env["PATH"]):
            raise Skip(f"there is no {program}")
    at, plain = workdir() / "projects" / name, workdir() / "plain" / name
    at.mkdir(parents=True)
    plain.parent.mkdir(exist_ok=True)
    make(at)
    run(["cp", "-a", at, plain])
    run(["sh", "-ec", script], LIMIT_S, cwd=plain, env=env)


@command("try", "5 minutes", on(PLACES), argument("--only", "", "only programs whose name has this word", metavar="WORD"))
def trial(options, verdict):
    """Runs programs in `lightfoot try`, in directories of ext4, XFS, btrfs, tmpfs and overlayfs; as a user on ext4 and tmpfs.

    The programs: git, cargo, make with gcc, a shell that moves and removes directories, npm, and SQLite, from two processes at
    once. After --drop, and after Ctrl-C in the middle, the directory is as it was, in every attribute; after --apply it is as the
    program makes it without `try`, and the program is satisfied with it. Nothing stays mounted. --on names the file systems."""
    with toolchain() as rust:
        root, names = environment(0, rust), []
        for name in PROGRAMS:
            if options.only in name:
                with verdict.catch(name):
                    prepare(name, root)
                    names.append(name)
        open_device()
        for kind in options.on.split(","):
            with verdict.catch(kind), Mount(kind, lower=workdir() / "projects") as mount:
                for uid in (0, NOBODY.uid) if kind in OF_USERS else (0,):
                    env, top = environment(uid, rust), mount.dir
                    if kind != "overlay":
                        top = mount.dir / str(uid)
                        run(["cp", "-a", workdir() / "projects", top])
                        run(["chown", "-hR", f"{uid}:{uid}", top])
                    for name in names:
                        what = f"{name} on {kind}" + (", as a user" if uid else "")
                        with verdict.catch(what):
                            Case(top / name, name, uid, env).run(workdir() / "plain" / name)
                            verdict.ok(what)
