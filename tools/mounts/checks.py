"""Everyday use of a file system: shell scripts (ORDINARY) and programs (PROGRAMS), each in a directory of its own. Not a
program. A check raises when something is wrong, Unsupported when the file system lacks it.
"""

import errno
import hashlib
import mmap
import multiprocessing
import os
import pathlib
import random
import socket
import subprocess
import tempfile
import time

from mounts.machine import Skip, Unsupported, need_program, run
from mounts.mount import scratch

# Before each script: `not` for what must fail, `same WANTED GOT`.
PREAMBLE = """
set -euo pipefail
umask 022
not() { if "$@" 2>/dev/null; then echo "succeeded: $*"; exit 1; fi; }
same() { [ "$1" = "$2" ] || { echo "wanted '$1', got '$2'"; exit 1; }; }
as_nobody() { setpriv --reuid 65534 --regid 65534 --clear-groups "$@"; }
"""

ORDINARY = [
    ("mkdir -p, rmdir", """
        mkdir -p a/b/c; [ -d a/b/c ]; same 3 "$(stat -c %h a)"; not rmdir a; rmdir a/b/c a/b a; [ ! -e a ]; not ls a
        mkdir a; not mkdir a; mkdir -m 700 b; same 700 "$(stat -c %a b)"; """),
    ("writing, appending, reading", """
        echo one >f; echo two >>f; same "one two" "$(echo $(cat f))"; same 8 "$(stat -c %s f)"; : >f; same 0 "$(stat -c %s f)"
        not cat absent; seq 100000 >big; same "$(seq 100000 | sha256sum)" "$(sha256sum <big)" """),
    ("cp -a keeps modes, times, links", """
        mkdir s; echo a >s/f; chmod 640 s/f; touch -d '2001-02-03 04:05:06.789' s/f; ln s/f s/hard; ln -s f s/soft; mkdir s/d
        chmod 2750 s/d; touch -d '2002-02-02' s/d; cp -a s t; diff -r s t
        list() { (cd "$1"; find . -mindepth 1 -printf '%P %y %m %U %G %n %T@ %l\\n' | sort); }; same "$(list s)" "$(list t)"
        same "$(stat -c %i t/f)" "$(stat -c %i t/hard)" """),
    ("mv: within, over a file, across directories, directories", """
        mkdir a b; echo 1 >a/f; ino=$(stat -c %i a/f); mv a/f b/g; [ ! -e a/f ]; same 1 "$(cat b/g)"; same $ino "$(stat -c %i b/g)"
        echo 2 >a/f; mv a/f b/g; same 2 "$(cat b/g)"; mv b a/; same 2 "$(cat a/b/g)"; mkdir c; mv -T a/b c; same 2 "$(cat c/g)"
        mkdir e; not mv -T e c; not mv c c/inside; mv c c2; same g "$(ls c2)" """),
    ("ln: link counts and one inode", """
        echo x >f; ln f g; same 2 "$(stat -c %h f)"; same "$(stat -c %i f)" "$(stat -c %i g)"; echo y >>g; same "x y" "$(echo $(cat f))"
        rm f; same 1 "$(stat -c %h g)"; same "x y" "$(echo $(cat g))"; mkdir d; not ln d e; not ln g g """),
    ("ln -s: relative, absolute, dangling, loops", """
        mkdir d; echo x >d/f; ln -s d/f l; same x "$(cat l)"; same d/f "$(readlink l)"; ln -s "$PWD/d" m; same f "$(ls m/)"
        ln -s nowhere n; not cat n; [ -L n ]; not [ -e n ]; echo made >n; same made "$(cat nowhere)"; ln -s o p; ln -s p o; not cat o
        rm l; same x "$(cat d/f)"; rm m; same f "$(ls d)" """),
    ("chmod, chown, and what they clear", """
        echo x >f; for m in 0 644 755 4755 2755 1777; do chmod $m f; same $m "$(stat -c %a f)"; done
        chmod 6755 f; chown 1000:1001 f; same "1000 1001 755" "$(stat -c '%u %g %a' f)"; mkdir d; chmod 2775 d; chown 0:1001 d
        : >d/f; same 1001 "$(stat -c %g d/f)"; mkdir d/e; same "1001 2755" "$(stat -c '%g %a' d/e)" """),
    ("touch: times to the nanosecond, of links too", """
        : >f; touch -d '2010-11-12 13:14:15.123456789 UTC' f; same 1289567655.123456789 "$(date +%s.%N -r f)"
        touch -a -d '2011-01-01 UTC' f; same "1293840000 1289567655" "$(stat -c '%X %Y' f)"; ln -s f l
        touch -h -d '1999-01-01 UTC' l; same 915148800 "$(stat -c %Y l)"; same 1289567655 "$(stat -L -c %Y l)"
        before=$(stat -c %Y f); echo x >>f; [ "$(stat -c %Y f)" -gt "$before" ] """),
    ("truncate and sparse files", """
        echo hello >f; truncate -s 2 f; same he "$(cat f)"; truncate -s 10 f; same 10 "$(stat -c %s f)"
        same "68650000000000000000" "$(od -An -v -tx1 f | tr -d ' \\n')"; truncate -s 1G s; same 1073741824 "$(stat -c %s s)"
        printf end | dd of=s bs=1 seek=500000000 conv=notrunc status=none; same end "$(dd if=s bs=1 skip=500000000 count=3 status=none)"
        [ "$(stat -c %b s)" -lt 100000 ] """),
    ("dd: blocks, seeks, conv=notrunc", """
        head -c 3000000 /dev/urandom >r; dd if=r of=w bs=65537 status=none; cmp r w
        dd if=r of=w bs=4096 skip=3 seek=3 count=5 conv=notrunc status=none; cmp r w; dd if=w bs=1M status=none | cmp - r
        dd if=r of=w bs=1M oflag=append conv=notrunc status=none; same 6000000 "$(stat -c %s w)" """),
    ("find by type, name, mode, size, age", """
        mkdir -p a/b a/c; for i in $(seq 50); do echo $i >a/b/f$i; done; ln -s x a/l; chmod 600 a/b/f7; touch -d 2000-01-01 a/b/f9
        same 50 "$(find . -type f | wc -l)"; same 4 "$(find . -type d | wc -l)"; same ./a/l "$(find . -type l)"
        same ./a/b/f7 "$(find . -perm 600)"; same ./a/b/f9 "$(find . -type f ! -newermt 2001-01-01)"; same 11 "$(find . -name 'f1*' | wc -l)" """),
    ("names: long, odd, not ASCII", """
        n=$(printf 'x%.0s' $(seq 255)); : >"$n"; same "$n" "$(ls)"; not touch "${n}y"; rm "$n"
        for n in 'a b' '-dash' $'new\\nline' 'größe' $'\\xff\\xfe' '*' '\\' .hidden; do echo "$n" >"./$n"; same "$n" "$(cat "./$n")"; done
        same 8 "$(ls -A --quoting-style=c | wc -l)"; mkdir -p "$(printf 'directory%.0s/' $(seq 60))"; rm -r directory """),
    ("a directory of 5,000 names", """
        mkdir d; cd d; seq -f 'file-%05.0f' 5000 | xargs touch; same 5000 "$(ls | wc -l)"; same 5000 "$(find . -type f -links 1 | wc -l)"
        rm file-0[01]*; same 3001 "$(ls | wc -l)"; cd ..; rm -r d; [ ! -e d ] """),
    ("rm -r of a deep and wide tree", """
        for i in 1 2 3 4 5; do for j in 1 2 3 4 5; do mkdir -p t/$i/$j/a/b/c/d/e; touch t/$i/$j/{x,y,z} t/$i/$j/a/b/c/d/e/f; done; done
        cp -a t u; rm -r t; [ ! -e t ]; same 100 "$(find u -type f | wc -l)"; rm -rf u; same "" "$(ls -A)" """),
    ("fifos and devices", """
        mkfifo p; (echo through >p) & same through "$(cat p)"; wait; [ -p p ]
        mknod n c 1 3; same "1 3" "$(stat -c '%t %T' n)" """),
    ("running a program and a script", """
        cp /bin/true t; ./t; printf '#!/bin/sh\\necho "ran $1"\\n' >s; chmod 755 s; same "ran it" "$(./s it)"; chmod 644 s; not ./s """),
    ("a running program is not emptied by an open that fails", """
        cp /bin/sleep p; ./p 30 & child=$!; until [ "$(readlink /proc/$child/exe)" = "$PWD/p" ]; do :; done
        for how in 'O_WRONLY' 'O_RDWR' 'O_RDONLY|os.O_TRUNC' 'O_WRONLY|os.O_TRUNC'; do
            same 26 "$(python3 -c "import os
try: os.open('p', os.$how); print('opened')
except OSError as e: print(e.errno)")"
        done; cmp /bin/sleep p; kill $child """),
    ("permissions of another user", """
        mkdir -m 755 closed; mkdir -m 1777 open; echo x >closed/f; chmod 600 closed/f; not as_nobody cat closed/f
        not as_nobody touch closed/new; as_nobody sh -c 'umask 027; echo mine >open/f'; same "65534 65534 640" "$(stat -c '%u %g %a' open/f)"
        as_nobody cat open/f >/dev/null; echo root >open/root; not as_nobody rm -f open/root; not as_nobody mv open/root open/r2
        not as_nobody chmod 777 open/root; as_nobody mkdir open/d; same 65534 "$(stat -c %u open/d)"; mkdir -m 700 private; : >private/f
        not as_nobody stat private/f; not as_nobody ls private """),
    ("df and stat -f", """
        df -P . | tail -n 1 | grep -q "$(cd ..; dirname "$PWD")" || df -P .; [ "$(stat -f -c %b .)" -ge 0 ]; [ "$(stat -f -c %l .)" -ge 255 ] """),
    ("sort, sed -i, patch-like edits", """
        seq 2000 | shuf >f; sort -n -o f f; same "$(seq 2000 | sha256sum)" "$(sha256sum <f)"; sed -i s/^1000$/thousand/ f
        same thousand "$(sed -n 1000p f)"; same f "$(ls -A)" """),
    ("flock excludes", """
        : >lock; flock lock sh -c 'flock -n lock true && echo both || echo one' >out; same one "$(cat out)"; flock -n lock true """),
]


def shell(script, at):
    done = subprocess.run(
        ["bash", "-c", PREAMBLE + script], cwd=at, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", timeout=60,
    )
    assert done.returncode == 0, f"status {done.returncode}: {(done.stdout + done.stderr).strip()[-800:]}"


def equal(wanted, got):
    assert wanted == got, f"wanted {wanted!r}, got {got!r}"


def equal_lists(wanted, got):
    """Whatever their order; says which lines differ."""
    wanted, got = sorted(wanted), sorted(got)
    if wanted != got:
        missing, more = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
        raise AssertionError(f"{len(missing)} lacking, such as {missing[:3]}; {len(more)} too many, such as {more[:3]}")


def raises(number, function):
    try:
        function()
    except OSError as error:
        assert error.errno == number, f"wanted {errno.errorcode[number]}, got {error}"
        return
    raise AssertionError(f"wanted {errno.errorcode[number]}, and it succeeded")


# ---- programs ----


def _quiet_git(at, *words, check=True):
    environment = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@example.org"}
    words = ["git", "-c", "protocol.file.allow=always", "-C", str(at), *words]
    return run(words, 120, check=check, env=environment)


def _origin():
    """A repository of 300 files and 5 commits, made once for each user."""
    at = scratch() / f"origin-{os.geteuid()}"
    if at.exists():
        return at
    at.mkdir()
    _quiet_git(at, "init", "-q", "-b", "main")
    dice = random.Random(2)
    for commit in range(5):
        for number in range(0, 300, 1 if commit == 0 else 7):
            file = at / f"dir{number % 12}" / f"sub{number % 5}" / f"file{number}.txt"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{dice.random()}\n" for _ in range(dice.randrange(1, 200))))
        (at / "link").unlink(missing_ok=True)
        (at / "link").symlink_to(f"dir{commit}")
        (at / "run.sh").write_text(f"#!/bin/sh\necho {commit}\n")
        (at / "run.sh").chmod(0o755)
        _quiet_git(at, "add", "-A")
        _quiet_git(at, "commit", "-qm", f"commit {commit}")
    return at


def git_works(at):
    origin, clone = _origin(), at / "clone"
    _quiet_git(at, "clone", "-q", "--no-local", str(origin), str(clone))
    equal("", _quiet_git(clone, "status", "--porcelain").stdout)
    _quiet_git(clone, "diff", "--exit-code")
    _quiet_git(clone, "fsck", "--full", "--strict")
    with open(clone / "dir1/sub1/file1.txt", "a", encoding="ascii") as file:
        file.write("one more line\n")
    equal(" M dir1/sub1/file1.txt\n", _quiet_git(clone, "status", "--porcelain").stdout)
    assert "+one more line" in _quiet_git(clone, "diff").stdout, "the diff lacks the edit"
    _quiet_git(clone, "commit", "-qam", "an edit")
    _quiet_git(clone, "checkout", "-q", "HEAD~3")
    _quiet_git(clone, "checkout", "-q", "main")
    _quiet_git(clone, "mv", "dir2", "moved")
    _quiet_git(clone, "stash", "-q")
    _quiet_git(clone, "gc", "-q", "--prune=now")
    equal("", _quiet_git(clone, "status", "--porcelain").stdout)
    _quiet_git(clone, "fsck", "--full", "--strict")


def _listing(at):
    """What tar must carry of a tree: kinds, modes, owners, link counts, times, targets, and sizes of files."""
    form = r"%P %y %m %U %G %T@ %l\n"
    names = run(["find", str(at), "-mindepth", "1", "-printf", form]).stdout
    sizes = run(["find", str(at), "-type", "f", "-printf", r"%P %s %n\n"]).stdout
    return names.splitlines() + sizes.splitlines()


def _reference_tree():
    """A tree with files of all sizes, modes, old times, links of both kinds, made once for each user."""
    at = scratch() / f"reference-{os.geteuid()}"
    if at.exists():
        return at
    at.mkdir()
    dice = random.Random(3)
    for number in range(1500):
        file = at / f"d{number % 30}" / f"e{number % 7}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        size = dice.choice((0, 1, 100, 4095, 4096, 4097, 20000, 200000 if number % 50 == 0 else 10))
        file.write_bytes(dice.randbytes(size))
        file.chmod(dice.choice((0o644, 0o600, 0o755, 0o444, 0o4755)))
        if number % 10 == 0:
            os.link(file, at / f"hard{number}")
            (at / f"soft{number}").symlink_to(file.relative_to(at))
        os.utime(file, ns=(dice.randrange(2**60), dice.randrange(2**60)))
    os.utime(at / "d3", ns=(10**18, 10**18 + 123456789))
    return at


def tar_in_and_out(at):
    reference, inside = _reference_tree(), at / "in"
    back = pathlib.Path(tempfile.mkdtemp(dir=scratch()))
    inside.mkdir()
    try:
        run(f"tar --format=posix -cf - -C '{reference}' . | tar xpf - -C '{inside}'")
        run(["diff", "-r", "--no-dereference", str(reference), str(inside)])
        equal_lists(_listing(reference), _listing(inside))
        run(f"tar --format=posix -cf - -C '{inside}' . | tar xpf - -C '{back}'")
        run(["diff", "-r", "--no-dereference", str(reference), str(back)])
        equal_lists(_listing(reference), _listing(back))
        run(["rm", "-r", str(inside)])
    finally:
        run(["rm", "-rf", str(back)])


def parallel_find(at):
    """Four finds at once see the same names, while another directory is churned."""
    reference, tree, churn = _reference_tree(), at / "tree", at / "churn"
    run(["cp", "-a", str(reference), str(tree)])
    churn.mkdir()
    churner = subprocess.Popen(
        ["bash", "-c", "while :; do for i in $(seq 50); do : >x$i; done; mv x1 y1; rm -f x* y*; done"], cwd=churn
    )
    try:
        command = ["find", ".", "-printf", r"%P %s %i\n"]
        finds = [subprocess.Popen(command, cwd=tree, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        lists = [sorted(find.communicate(timeout=60)[0].splitlines()) for find in finds]
    finally:
        churner.kill()
        churner.wait()
    equal([0] * 4, [find.returncode for find in finds])
    assert lists[0] == lists[1] == lists[2] == lists[3], "the finds differ"
    wanted = sorted(str(path.relative_to(reference)) for path in reference.rglob("*"))
    equal_lists(wanted, [line.rsplit(" ", 2)[0] for line in lists[0] if not line.startswith(" ")])
    deadline = time.monotonic() + 10
    while os.listdir(churn) and time.monotonic() < deadline:
        run("rm -rf ./*", cwd=churn)


# ---- storms: processes, since threads of Python share one lock ----


def _together(functions, seconds):
    """Runs each in a process with a stop time; their problems, if any."""
    context = multiprocessing.get_context("fork")
    problems = context.SimpleQueue()
    until = time.monotonic() + seconds

    def guarded(function):
        try:
            function(until)
        except BaseException as error:  # noqa: B036  What a process meets is reported by its parent.
            problems.put(f"{function.__name__}: {type(error).__name__}: {error}")
            os._exit(1)
        os._exit(0)

    processes = [context.Process(target=guarded, args=(function,)) for function in functions]
    for process in processes:
        process.start()
    for process in processes:
        process.join(seconds + 30)
        if process.is_alive():
            process.kill()
            problems.put("a process hangs")
    found = []
    while not problems.empty():
        found.append(problems.get())
    assert not found and all(process.exitcode == 0 for process in processes), "; ".join(found) or "a process died"


def renames_replace(at):
    """Names are replaced by rename all the time: who opens one finds it, whole, with the contents of one writer."""

    def writer(who):
        def write(until):
            count = 0
            while time.monotonic() < until:
                count += 1
                body = f"{who} {count} ".encode() * 500
                temporary = at / f"temporary{who}"
                temporary.write_bytes(body + hashlib.sha256(body).digest())
                os.rename(temporary, at / f"name{count % 4}")
        return write

    def read(until):
        while time.monotonic() < until:
            for number in range(4):
                data = (at / f"name{number}").read_bytes()
                assert hashlib.sha256(data[:-32]).digest() == data[-32:], f"name{number} is torn ({len(data)} bytes)"

    def stat(until):
        while time.monotonic() < until:
            for number in range(4):
                os.stat(at / f"name{number}")

    body = b"first"
    for number in range(4):
        (at / f"name{number}").write_bytes(body + hashlib.sha256(body).digest())
    _together([writer(0), writer(1), writer(2), read, stat], 3)
    equal([f"name{number}" for number in range(4)], sorted(os.listdir(at)))


def renames_lose_nothing(at):
    """Each of some processes moves its own file among names in three directories, while others stat all of the names:
    the file is always at the name that its owner gave it, there is one of each in the end, and nothing but ENOENT is seen."""
    directories = [at / f"d{number}" for number in range(3)]
    for directory in directories:
        directory.mkdir()

    def names(who):
        return [directory / f"{who}-{number}" for directory in directories for number in range(3)]

    def mover(who):
        def move(until):
            dice, places = random.Random(who), names(who)
            here = places[0]
            here.write_text(str(who))
            number = os.stat(here).st_ino
            while time.monotonic() < until:
                there = dice.choice(places)
                os.rename(here, there)
                here = there
                assert os.stat(here).st_ino == number, "another inode is at the name"
                equal(str(who), here.read_text())
        return move

    def watch(until):
        seen = 0
        while time.monotonic() < until:
            for who in range(3):
                for place in names(who):
                    try:
                        os.stat(place)
                        seen += 1
                    except FileNotFoundError:
                        pass
        assert seen, "never saw a file"

    def listing(until):
        while time.monotonic() < until:
            for directory in directories:
                os.listdir(directory)

    _together([mover(0), mover(1), mover(2), watch, listing], 3)
    left = sorted(name.split("-")[0] for directory in directories for name in os.listdir(directory))
    equal(["0", "1", "2"], left)


def directories_move(at):
    """Directories are moved into one another while files in them are used by relative paths, and by walks through `..`."""
    (at / "a/b/c").mkdir(parents=True)
    (at / "x").mkdir()
    (at / "a/b/c/file").write_text("here")

    def move(until):
        while time.monotonic() < until:
            os.rename(at / "a/b", at / "x/b")
            os.rename(at / "x/b", at / "a/b")

    def use(until):
        # The directory may be under way to its other place.
        while time.monotonic() < until:
            try:
                os.chdir(at / "a/b/c")
                break
            except FileNotFoundError:
                pass
        while time.monotonic() < until:
            equal("here", pathlib.Path("file").read_text())
            equal("here", pathlib.Path("../c/file").read_text())
            pathlib.Path("new").write_text("x")
            os.rename("new", "newer")
            os.unlink("newer")

    def walk(until):
        found = 0
        while time.monotonic() < until:
            for way in ("a/b/c/file", "x/b/c/file"):
                try:
                    equal("here", (at / way).read_text())
                    found += 1
                except FileNotFoundError:
                    pass
        assert found, "never found the file"

    _together([move, use, walk], 3)
    equal(["file"], os.listdir(at / "a/b/c"))


# ---- single system calls ----


def appended_by_two(at):
    """Two processes append lines with O_APPEND: none is lost and none is torn."""
    def appender(who):
        def append(_until):
            descriptor = os.open(at / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
            for number in range(2000):
                os.write(descriptor, f"{who} {number:06} {'x' * 20}\n".encode())
            os.close(descriptor)
        return append

    _together([appender(0), appender(1)], 0)
    lines = (at / "log").read_text().splitlines()
    equal(4000, len(set(lines)))
    for who in "01":
        equal([f"{who} {number:06} {'x' * 20}" for number in range(2000)], [line for line in lines if line[0] == who])


def mapped(at):
    """A shared map and read(2) show each other's changes; msync and close bring it into the file."""
    path = at / "file"
    path.write_bytes(bytes(10000))
    with open(path, "r+b", buffering=0) as file:
        with mmap.mmap(file.fileno(), 10000) as area:
            area[5000:5005] = b"hello"
            equal(b"hello", os.pread(file.fileno(), 5, 5000))
            os.pwrite(file.fileno(), b"world", 9000)
            equal(b"world", area[9000:9005])
            area.flush()
        equal(b"hello", path.read_bytes()[5000:5005])
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as area:
        equal(b"world", area[9000:9005])


def sockets(at):
    """A socket in the file system connects two processes' ends."""
    here = os.getcwd()
    os.chdir(at)
    try:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind("s")
            server.listen(1)
            client.connect("s")
            with server.accept()[0] as end:
                client.sendall(b"through")
                equal(b"through", end.recv(100))
    finally:
        os.chdir(here)


ACLS = """
    # A member of group 3001 may do what the ACL allows, and nothing that it refuses.
    member() { setpriv --reuid 1001 --regid 2001 --groups 3001 "$@"; }
    mkdir -m 755 s; echo secret >s/f; chmod 644 s/f; member cat s/f >/dev/null
    setfacl -m g:3001:---,u:65534:rw s/f; not member cat s/f; as_nobody sh -c 'echo more >>s/f'
    getfacl -cp s/f | grep -qx 'group:3001:---'
    setfacl -m g:3001:r-- s/f; member cat s/f >/dev/null; setfacl -m g:3001:--- s/f; not member cat s/f
    not as_nobody setfacl -b s/f; chmod 600 s/f; not as_nobody cat s/f; chmod 660 s/f; as_nobody cat s/f >/dev/null
    # Inherited, and without the umask.
    mkdir d; setfacl -d -m u::rwx,g::rwx,o::---,g:3001:r-x d; (umask 077; echo x >d/f; mkdir d/sub)
    same 660 "$(stat -c %a d/f)"; getfacl -cp d/f | grep -q '^group:3001:r-x'; getfacl -cp d/sub | grep -q '^default:group:3001:r-x'
    mv d/f s/moved; getfacl -cp s/moved | grep -q '^group:3001:r-x'
    # Kept by what copies them.
    list() { (cd "$1"; find . | sort | getfacl -p - ); }; cp -a s c; same "$(list s)" "$(list c)"; cp -a d e; same "$(list d)" "$(list e)"
    tar --acls -cf t.tar s d; mkdir t; tar --acls -xpf t.tar -C t; same "$(list s)" "$(list t/s)"; same "$(list d)" "$(list t/d)"
    rsync -aA s d r/; same "$(list s)" "$(list r/s)"; same "$(list d)" "$(list r/d)"
    setfacl -bk d/sub s/f; same "" "$(getfacl -cps s/f d/sub)"
"""


def acls(at):
    """setfacl, inheritance, tar --acls, rsync -A; what an ACL refuses is refused."""
    try:
        need_program("setfacl", "acl")
        need_program("rsync")
    except Skip as why:
        raise Unsupported(str(why)) from None
    probe = at / "probe"
    probe.write_text("")
    done = subprocess.run(["setfacl", "-m", "u:1:r", probe], capture_output=True, text=True)
    if "not supported" in done.stderr:
        raise Unsupported("it has no ACLs")
    probe.unlink()
    shell(ACLS, at)


def listing_while_removing(at):
    """Names that stay are listed once each, though others come and go meanwhile."""
    stay = {f"stay{number:04}" for number in range(800)}
    for name in stay:
        (at / name).touch()
    for number in range(800):
        (at / f"go{number:04}").touch()
    for turn in range(4):
        seen = []
        with os.scandir(at) as entries:
            for count, entry in enumerate(entries):
                seen.append(entry.name)
                if count % 4 == 0:
                    number = (turn * 200 + count // 4) % 800
                    (at / f"go{number:04}").unlink(missing_ok=True)
                    (at / f"new{turn}-{count}").touch()
        kept = [name for name in seen if name.startswith("stay")]
        equal(len(kept), len(set(kept)))
        equal(stay, set(kept))


def prepare():
    """Makes what checks share, for this user."""
    _origin()
    _reference_tree()


PROGRAMS = [
    ("git clone, status, diff, commit, checkout, gc", git_works),
    ("tar in and out, byte for byte, with modes and times", tar_in_and_out),
    ("parallel find", parallel_find),
    ("rename storm: names that are replaced", renames_replace),
    ("rename storm: files that move among directories", renames_lose_nothing),
    ("rename storm: directories that move", directories_move),
    ("O_APPEND by two processes", appended_by_two),
    ("mmap", mapped),
    ("sockets", sockets),
    ("ACLs, by setfacl, tar and rsync", acls),
    ("listing while names come and go", listing_while_removing),
]
