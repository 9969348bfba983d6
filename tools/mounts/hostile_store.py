"""`hostile-store`: mounts of a bucket whose server lies, hangs, never ends, or loses answers. Not a program.

The server is store_server.py. Programs use each mount as their users do; the checks look at what the programs get, at what the
server saw, and at the memory and the end of the daemon. Limits of time are far above what a row needs: they end a row that hangs.
"""

import contextlib
import gzip
import hashlib
import itertools
import os
import pathlib
import queue
import shlex
import signal
import socket
import subprocess
import sys
import threading
import time

from mounts.machine import drop_caches, run, wait_for
from mounts.mount import Mount, is_mounted, plain, workdir
from mounts.peers import lightfoot
from mounts.runner import LIST, argument, command
from mounts.store_server import BUCKET, MIB, Answer, Object, Store, Upload, Zeros, contents, error, head_of, size_of, xml

# Rows at a time; most of them wait.
AT_ONCE = 6
# Far longer than anything here takes on a loaded machine.
LIMIT_S = 60
# The most that a daemon may have in memory, whatever a store sends.
MOST_BYTES = 512 * MIB
REGION = "eu-west-3"

ROWS = []


def row(title, is_long=False):
    """Registers a function as a row. A long one needs --all."""

    def add(function):
        ROWS.append((title, function, is_long))
        return function

    return add


def pattern(size):
    """Bytes that differ from block to block."""
    block = b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))
    return block[:size]


def peak_bytes(mount):
    """The most that the daemon has had in memory."""
    with open(f"/proc/{mount.pid}/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))


@contextlib.contextmanager
def mounted(store, options="", prefix="", before=(), expect_exit=True):
    """A mount of the store's bucket, whose daemon lives to the end of the block, stays small, and ends well."""
    source = f"s3://{BUCKET}/{prefix}".rstrip("/")
    mount = plain(source, ",".join(filter(None, (f"endpoint={store.endpoint}", options))), before=before)
    try:
        yield mount
        if expect_exit:
            assert mount.daemon.poll() is None, f"the daemon ended: {mount.log_tail()}"
            peak = peak_bytes(mount)
            assert peak < MOST_BYTES, f"the daemon has had {peak // MIB} MiB in memory"
            said = mount.log_tail()
            assert "panicked" not in said, said
            status = mount.unmount_daemon()
            assert status == 0, f"the daemon ended with the status {status}: {said}"
    finally:
        mount.down(expect_exit=False)


def do(mount, *words, limit_s=LIMIT_S):
    """A program in the mount; what it wrote is in stdout, as bytes."""
    return subprocess.run([str(word) for word in words], cwd=mount.dir, stdin=subprocess.DEVNULL, capture_output=True,
                          timeout=limit_s, env=dict(os.environ, LC_ALL="C"))


def fails(mount, *words):
    done = do(mount, *words)
    assert done.returncode != 0, f"it succeeded: {shlex.join(map(str, words))}: {done.stdout[:200]}"
    return done.stderr.decode(errors="replace")


def works(mount, *words):
    done = do(mount, *words)
    assert done.returncode == 0, f"{shlex.join(map(str, words))}: {done.stderr.decode(errors='replace')}"
    return done.stdout


CALLS = """
import errno, os, sys
def write(path, data, flags=os.O_WRONLY):
    descriptor = os.open(path, flags, 0o644)
    try:
        while data:
            data = data[os.write(descriptor, data):]
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
try:
    exec(sys.argv[1])
    found = "ok"
except OSError as error:
    found = errno.errorcode[error.errno]
print(found)"""


def call(mount, code):
    """What system calls in the mount return: the name of an error, or `ok`."""
    return works(mount, sys.executable, "-IS", "-c", CALLS, code).decode().strip()


def overwrite(name, text="new"):
    """The words of a program that writes a file anew, and reports the error of its close: a shell's `>` does not."""
    return [sys.executable, "-IS", "-c", CALLS + "; sys.exit(found != 'ok')",
            f"write({name!r}, {text.encode()!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)"]


def append(name, text="end"):
    return [sys.executable, "-IS", "-c", CALLS + "; sys.exit(found != 'ok')",
            f"write({name!r}, {text.encode()!r}, os.O_WRONLY | os.O_APPEND)"]


def start(mount, *words):
    """A program in the mount that goes on."""
    return subprocess.Popen([str(word) for word in words], cwd=mount.dir, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def names(mount, at="."):
    return sorted(works(mount, "ls", "-A", "--", at).decode().splitlines())


def equal(expected, found, what=""):
    assert expected == found, f"{what}: expected {expected!r:.300}, found {found!r:.300}"


def is_right(mount, name, data):
    """Whether a program reads the contents. If not, it gets an error, and before it no wrong byte."""
    done = do(mount, "cat", name)
    if done.returncode == 0:
        equal(len(data), len(done.stdout), f"{name}: the length")
    assert data.startswith(done.stdout), f"{name}: wrong bytes"
    return done.returncode == 0


def together(*functions):
    """Calls all at once. Raises what one of them raised."""
    results = queue.Queue()

    def guarded(function):
        try:
            results.put(function())
        except BaseException as problem:  # Raised by the row's thread.
            results.put(problem)

    for function in functions:
        threading.Thread(target=guarded, args=(function,), daemon=True).start()
    found = [results.get() for _ in functions]
    for problem in found:
        if isinstance(problem, BaseException):
            raise problem


def in_groups(functions, size=12):
    """Calls a few at once: those that send without an end take the processors from the others."""
    for at in range(0, len(functions), size):
        together(*functions[at:at + size])


def mount_command(store, options="timeout=2s", source=f"s3://{BUCKET}"):
    """`lightfoot mount` of a store that refuses or hangs: its status and what it wrote. It must return."""
    at = workdir() / f"refused-{next(_refused)}"
    at.mkdir()
    words = [str(lightfoot()), "mount", source, str(at), "-o", f"endpoint={store.endpoint},{options}", "--daemon"]
    try:
        done = run(words, LIMIT_S, check=False)
    finally:
        if is_mounted(at):
            run([lightfoot(), "unmount", at], LIMIT_S, check=False)
    assert done.returncode != 101 and "panicked" not in done.stdout, done.stdout
    return done.returncode, done.stdout


_refused = itertools.count()


# ---- what a server sends that is not an answer ----


def hang(stream):
    """Never answers."""
    stream.recv(1)


def raw(*blocks, and_then=None):
    """Sends bytes."""

    def send(stream):
        for block in blocks:
            stream.sendall(block)
        if and_then:
            and_then(stream)
        else:
            stream.shutdown(socket.SHUT_WR)

    return send


def forever(block):
    """Sends a block again and again until the client leaves."""
    block = block * (64 * 1024 // len(block) + 1)

    def send(stream):
        while True:
            stream.sendall(block)

    return send


def drip(stream):
    """A byte each second."""
    while True:
        stream.sendall(b" ")
        time.sleep(1)


def changed(answer, **headers):
    """The answer with other headers: `content_length="7"`; None removes one."""
    of = {name.replace("_", "-"): value for name, value in headers.items()}
    kept = [(name, value) for name, value in answer.headers if name.lower() not in of]
    return answer._replace(headers=kept + [(name.title(), value) for name, value in of.items() if value is not None])


def more(answer, *pairs):
    return answer._replace(headers=[*answer.headers, *pairs])


# ---- names ----


@row("keys that end or begin with white space stand for no other object")
def white_space(_):
    blanks = ["name ", " name", "dir/g ", "tab\t", "line\n", "space\u00a0"]
    others = ["name", "dir/f", "dir/g", "dir /f", "d/x", "tab", "line", "space"]
    with Store({key: key.encode() for key in blanks + others + ["d /x"]}) as store, mounted(store) as mount:
        equal(["d", "d ", "dir", "dir ", "line", "name", "space", "tab"], names(mount))
        before = store.contents()
        for name in blanks:
            for words in (["cat", name], ["rm", name], ["mv", name, "elsewhere"], ["mv", "name", name],
                          ["bash", "-c", 'echo new >> "$0"', name], ["bash", "-c", 'echo new > "$0"', name], ["rmdir", name],
                          ["cp", "name", name], ["truncate", "-s0", name], ["ln", "name", name]):
                fails(mount, *words)
                equal(before, store.contents(), f"after {words}")
            works(mount, "rm", "-rf", name)
            equal(before, store.contents(), f"after rm -rf {name!r}")
        works(mount, "rm", "-rf", "d ")
        equal({"d /x"}, before.keys() - store.contents().keys())
        works(mount, "mv", "dir /f", "moved")
        equal(b"dir /f", store.contents().get("moved"))
        equal({key: key.encode() for key in blanks + others if key != "dir /f"},
              {key: data for key, data in store.contents().items() if key in before})
    with Store() as store:
        status, said = mount_command(store, source=f"s3://{BUCKET}/prefix ")
        assert status != 0 and not store.requests, said


@row("a listing with bad entries")
def bad_entries(_):
    time_of, size = "2026-01-02T03:04:05.000Z", 4
    bad = [contents(*fields) for fields in (
        ("pre", size), ("p", size), ("", size), ("/", size), ("//", size), ("other/a", size), ("pre//a", size), ("pre/..", size),
        ("pre/.", size), ("pre/../../etc/passwd", size), ("pre/%00", size), ("pre/%ff%fe", size), ("pre/a%00b", size),
        ("pre/big", 2**64), ("pre/big2", 2**64 - 1), ("pre/big3", 2**63), ("pre/negative", -1), ("pre/none", ""),
        ("pre/old", size, "9999-12-31T23:59:59Z"), ("pre/older", size, "-0001-01-01T00:00:00Z"), ("pre/when", size, "then"),
        ("pre/" + "n" * 300, size), ("pre/" + "k/" * 600 + "x", size), ("pre/deep%2F..%2F..", size), ("pre/" + "%41" * 1200, size))]
    bad += [("CommonPrefixes", [("Prefix", of)]) for of in ("p", "pre", "", "/", "pre//", "pre/../", "pre/no-end", "other/")]
    bad += [("Contents", []), ("CommonPrefixes", []), ("Contents", [("Key", [("Key", "pre/in")])]), ("Unknown", "x")]
    good = [contents("pre/good", size), contents("pre/%C3%A4+b", size), ("CommonPrefixes", [("Prefix", "pre/dir/")])]

    def page(elements, at=b""):
        answer = xml("ListBucketResult", ("IsTruncated", "false"), ("EncodingType", "url"), *elements)
        return answer._replace(body=answer.body.replace(b"\x02", at))

    pages = {element[0] + str(number): page([good[0], element, *good[1:]]) for number, element in enumerate(bad)}
    pages["all"] = page([good[0], *bad, *good[1:]])
    for text in (b"&#0;", b"&#xffff;", b"&unknown;", b"\xff\xfe", b"&#x110000;", b"<!-- -->", b"<![CDATA[ ]]>", b"<x/>"):
        pages[text.decode("latin-1")] = page([good[0], contents("pre/bad\x02", size, time_of), *good[1:]], text)
    pages["another content type"] = changed(page(good), content_type="text/html")
    pages["no content type"] = changed(page(good), content_type=None)
    broken = {"cut": b"<ListBucketResult><Contents>", "empty": b"", "text": b"no", "deep": b"<a>" * 100000, "not XML": b"<<<>>>",
              "other end": b"<ListBucketResult></x>", "nothing": b"\0" * 1000, "entities": b'<!DOCTYPE a [<!ENTITY b "&b;&b;">]><a>&b;'}
    current = {}

    def hook(request):
        # A name that is not listed must not be there either.
        return current.get("page") if request.kind == "LIST" else Answer(404) if request.kind == "HEAD" else None

    with Store(hook=hook) as store, mounted(store, "ttl=0", prefix="pre") as mount:
        for title, current["page"] in pages.items():
            found = {name for name in names(mount) if not name.startswith(("bad", "older", "old"))}
            shown = {"dir", "good", "\u00e4 b"}
            assert shown <= found and ".." not in found, f"{title}: {found}"
            assert found - shown <= {"..", "AAA", "dir"}, f"{title}: {found}"
        works(mount, "ls", "-la")
        for title, body in broken.items():
            current["page"] = Answer(200, [], body)
            assert do(mount, "ls").returncode != 0, f"{title}: an empty directory"
        for title in ("all", "&#0;", "\xff\xfe", "Contents0", "Contents1", "CommonPrefixes25"):
            current["page"] = pages[title]
            mount_command(store, source=f"s3://{BUCKET}/pre")
        current["page"] = page(good)


# ---- other servers ----


@row("a redirect is not followed, and its error names the region")
def redirects(_):
    with Store({"secret": b"secret"}) as other:
        def hook(request):
            kind, _, status = (request.key or request.query.get("prefix", "")).rstrip("/").partition("-")
            if request.kind != kind:
                return None
            headers = [("Location", f"{other.endpoint}/{BUCKET}/secret"), ("x-amz-bucket-region", REGION)]
            return Answer(int(status), headers, b"<Error><Code>PermanentRedirect</Code></Error>")

        statuses = (301, 302, 303, 307, 308)
        objects = {f"{kind}-{status}": b"data" for kind in ("GET", "DELETE", "COPY", "PUT", "HEAD") for status in statuses}
        objects |= {f"LIST-{status}/x": b"data" for status in statuses}
        with Store(objects, hook) as store, mounted(store, "ttl=0") as mount:
            for status in statuses:
                for words in (["cat", f"GET-{status}"], ["rm", f"DELETE-{status}"], ["ls", f"LIST-{status}"],
                              overwrite(f"PUT-{status}"), ["stat", f"HEAD-{status}"],
                              ["mv", f"GET-{status}", f"COPY-{status}"]):
                    fails(mount, *words)
            equal(objects, store.contents())
        with Store(hook=lambda _: Answer(301, [("Location", other.endpoint), ("x-amz-bucket-region", REGION)])) as store:
            status, said = mount_command(store)
            assert status not in (0, 101) and REGION in said, f"{status}: {said}"
        equal(0, other.connections, "connections to the other server")


# ---- what does not end ----


def entries(number):
    return "".join(f"<Contents><Key>{number:x}-{at:x}</Key><LastModified>2026-01-02T03:04:05Z</LastModified><Size>4</Size>"
                   f"</Contents>" for at in range(1000))


def page_of(text, token):
    body = f"<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>{token}</NextContinuationToken>{text}"
    return Answer(200, [], (body + "</ListBucketResult>").encode())


def endless_listings():
    """Kinds of listings without an end; each is a hook."""
    numbers, same, tag = itertools.count(), entries(0), "e" * 15000
    open_head = head_of(Answer(200, [("Transfer-Encoding", "chunked")]))
    fat = same.replace("<Size>", f"<ETag>{tag}</ETag><Size>")
    return {
        "new tokens without names": lambda _: page_of("", f"token{next(numbers)}"),
        "a token that repeats": lambda _: page_of(same, "token"),
        "tokens in turn": lambda _: page_of("<Contents><Key>a</Key></Contents>", f"token{next(numbers) % 50}"),
        "a body": lambda _: raw(head_of(Answer(200, [("Content-Length", 1 << 40)])), b"<ListBucketResult>",
                                and_then=forever(b"<Name>name</Name>")),
        "a body in chunks": lambda _: raw(open_head, and_then=forever(b"10000\r\n" + b" " * 0x10000 + b"\r\n")),
        "a text": lambda _: raw(b"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult><Name>", and_then=forever(b"a")),
        "entries": lambda _: raw(b"HTTP/1.1 200 OK\r\n\r\n<ListBucketResult>", and_then=forever(same.encode())),
        "elements in elements": lambda _: raw(b"HTTP/1.1 200 OK\r\n\r\n", and_then=forever(b"<a>")),
        "an error": lambda _: raw(b"HTTP/1.1 400 No\r\n\r\n<Error>", and_then=forever(b"<Code>a</Code>")),
        "headers": lambda _: raw(b"HTTP/1.1 200 OK\r\n", and_then=forever(b"x-header: value\r\n")),
        "one header": lambda _: raw(b"HTTP/1.1 200 OK\r\nx-header: ", and_then=forever(b"value")),
        "a byte each second": lambda _: raw(head_of(Answer(200, [("Content-Length", 1 << 20)])), and_then=drip),
        "a byte of the head each second": lambda _: raw(b"HTTP/1.1 200 OK\r\nx-header: ", and_then=drip),
        "fat pages": lambda _: page_of(fat.replace("<Key>", f"<Key>{next(numbers):x}-"), f"token{next(numbers)}"),
        "pages": lambda _: page_of(same.replace("<Key>", f"<Key>{next(numbers):x}-"), f"token{next(numbers)}"),
    }


# These take long before they end, since the bounds of names and of pages are far away.
LONG = ("fat pages", "pages")


@row("listings that do not end")
def endless_listing(_):
    def one(title, endless):
        armed = []
        with Store(hook=lambda request: endless(request) if armed and request.kind == "LIST" else None) as store:
            with mounted(store, "timeout=2s") as mount:
                armed.append(True)
                if title in LONG:
                    ls = start(mount, "ls", "-f")
                    pages = 20 if title == "fat pages" else 200
                    assert store.wait_for(lambda: len(store.of("LIST")) > pages) or ls.poll() is not None, "no pages"
                    ls.send_signal(signal.SIGINT)
                    ls.wait(LIMIT_S)
                else:
                    fails(mount, "ls")
            # It is not mounted, or it is and can be unmounted.
            mount_command(store)

    together(*(lambda title=title, hook=hook: named(title, one, title, hook) for title, hook in endless_listings().items()))


def named(title, function, *arguments):
    """Calls the function; names the case in what it raises."""
    try:
        function(*arguments)
    except Exception as problem:
        raise AssertionError(f"{title}: {problem}") from problem


HANGS = {
    "before an answer": hang,
    "in the head": raw(b"HTTP/1.1 200 OK\r\nContent-Le", and_then=hang),
    "in the body": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n0000", and_then=hang),
}
# Programs that wait for each kind of request, each in its own directory: the kernel locks the directory of a removal.
WAITERS = {"GET": ["cat", "GET/file"], "HEAD": ["stat", "HEAD/file"], "LIST": ["ls", "LIST"], "PUT": overwrite("PUT/file"),
           "DELETE": ["rm", "-f", "DELETE/file"], "COPY": ["mv", "COPY/old", "COPY/new"]}


def hanging_store(how):
    objects = {"GET/file": b"0" * 1000, "PUT/file": b"old", "DELETE/file": b"data", "COPY/old": b"data", "LIST/x": b"data"}
    ready = {"HEAD/other": b"data"}

    def hook(request):
        of = request.key or request.query.get("prefix", "")
        return how if of.split("/")[0] == request.kind and not of.endswith("/other") and store.is_armed else None

    store = Store(objects | ready, hook)
    store.is_armed = False
    return store


def is_waiter(request):
    return (request.key or request.query.get("prefix", "")).split("/")[0] == request.kind


def go_in(store, mount):
    """Looks at all directories; then the server hangs."""
    for name in WAITERS:
        names(mount, name)
    store.is_armed = True


@row("a server that hangs: a signal ends its callers")
def signals(_):
    def one(how):
        # Longer than this row may take.
        with hanging_store(how) as store, mounted(store, "timeout=120s,ttl=0") as mount:
            go_in(store, mount)
            waiting = {kind: start(mount, *words) for kind, words in WAITERS.items()}
            for kind in waiting:
                assert store.wait_for(lambda kind=kind: any(is_waiter(of) for of in store.of(kind))), f"{kind}: no request"
            for kind, program in waiting.items():
                program.send_signal(signal.SIGINT if kind != "HEAD" else signal.SIGTERM)
            for kind, program in waiting.items():
                try:
                    assert program.wait(LIMIT_S / 2) != 0, f"{kind}: it succeeded"
                except subprocess.TimeoutExpired:
                    program.kill()
                    raise AssertionError(f"{kind}: the signal did not end it") from None
            store.end()

    together(*(lambda title=title, how=how: named(title, one, how) for title, how in HANGS.items()))


@row("a server that hangs: callers get an error at the end of their tries, and SIGTERM ends the daemon")
def deadlines(_):
    def one(how):
        with hanging_store(how) as store:
            with mounted(store, "timeout=1s,ttl=0") as mount:
                go_in(store, mount)
                together(*(lambda words=words: fails(mount, *words) for words in WAITERS.values()))
            store.is_armed = False
            with mounted(store, "timeout=5s,ttl=0", expect_exit=False) as mount:
                go_in(store, mount)
                store.requests.clear()
                waiting = [start(mount, *words) for words in WAITERS.values()]
                assert store.wait_for(lambda: all(any(is_waiter(of) for of in store.of(kind)) for kind in WAITERS)), "no request"
                mount.daemon.terminate()
                # Four times the time of a try: without its bound, there would be four tries, and delays.
                assert mount.daemon.wait(20) in (0, -signal.SIGTERM), mount.log_tail()
                for program in waiting:
                    program.wait(LIMIT_S)

    together(*(lambda title=title, how=how: named(title, one, how) for title, how in HANGS.items()))


@row("a server that hangs: the mount command returns, and a signal ends it")
def mount_hangs(_):
    def one(how):
        with Store(hook=lambda _: how) as store:
            status, said = mount_command(store, "timeout=1s")
            assert status not in (0, 101) and "time" in said, f"{status}: {said}"
            at = workdir() / f"refused-{next(_refused)}"
            at.mkdir()
            words = [str(lightfoot()), "mount", f"s3://{BUCKET}", str(at), "-o", f"endpoint={store.endpoint},timeout=120s"]
            before = len(store.requests)
            with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as program:
                assert store.wait_for(lambda: len(store.requests) > before), "no request"
                program.send_signal(signal.SIGINT)
                program.wait(LIMIT_S / 2)

    together(*(lambda title=title, how=how: named(title, one, how) for title, how in HANGS.items()))


# ---- large objects ----


@contextlib.contextmanager
def small_disk():
    """A tmpfs of 64 MiB for TMPDIR."""
    at = workdir() / f"small-{next(_refused)}"
    at.mkdir()
    run(["mount", "-t", "tmpfs", "-o", "size=64m", "lightfoot-test", at], 20)
    try:
        yield at
    finally:
        run(["umount", "-l", at], 20, check=False)


@row("an open file of 1 TiB or 40 GiB is not loaded")
def huge_objects(_):
    objects = {"tera": Zeros(1 << 40), "large": Zeros(40 << 30), "small": b"small"}
    with small_disk() as at, Store(objects) as store, mounted(store, before=["env", f"TMPDIR={at}"]) as mount:
        before = set(objects)
        for name in ("tera", "large"):
            code = f"f = os.open({name!r}, os.O_RDONLY); "
            for act in (f"os.unlink({name!r})", f"os.rename('small', {name!r})"):
                found = call(mount, code + act)
                assert found in ("ENOSPC", "EFBIG"), f"{name}, {act}: {found}"
        for act in ("write('tera', b'end', os.O_WRONLY | os.O_APPEND)", "os.truncate('tera', (1 << 40) + 1)"):
            found = call(mount, act)
            assert found in ("ENOSPC", "EFBIG"), f"{act}: {found}"
        equal(before, set(store.contents()))
        read = sum(end - first for first, end in (request.range_of(1 << 40) or (0, 1 << 40) for request in store.of("GET")))
        assert read <= 8 * MIB, f"{read} bytes were requested"
        space = os.statvfs(at)
        assert (space.f_blocks - space.f_bfree) * space.f_frsize < 4 * MIB, "TMPDIR has grown"
        # As many bytes as the disk has not.
        found = call(mount, "write('tera', b'x' * (48 << 20), os.O_WRONLY | os.O_TRUNC)")
        equal("ENOSPC", found)
        equal("ok", call(mount, "os.unlink('tera')"))


@row("three bytes at the end of 40 MiB")
def small_append(_):
    data = pattern(40 * MIB)
    with Store({"log": data}) as store, mounted(store) as mount:
        names(mount)
        before = len(store.requests), store.received + store.sent
        works(mount, "bash", "-c", "printf end >> log")
        requests, moved = len(store.requests) - before[0], store.received + store.sent - before[1]
        assert requests <= 12 and moved < 12 * MIB, f"{requests} requests, {moved} bytes: {store.requests[before[0]:]}"
        equal(hashlib.sha256(data + b"end").digest(), hashlib.sha256(store.contents()["log"]).digest())
        equal({}, store.uploads)


@row("a large object is copied in parts")
def large_copies(_):
    for size in (256 * MIB, 256 * MIB + 1, 6 << 30):
        with Store({"old": Object(Zeros(size), [("x-amz-meta-note", "kept")])}) as store, mounted(store) as mount:
            etag = store.objects["old"].etag
            names(mount)
            works(mount, "mv", "old", "new")
            equal({"new": size}, {key: size_of(data) for key, data in store.contents().items()})
            equal([("x-amz-meta-note", "kept")], store.objects["new"].meta)
            parts = sorted(of.range_of(size, "x-amz-copy-source-range") for of in store.of("PART-COPY"))
            equal(size > 256 * MIB, bool(parts))
            ends = [0, *(end for _, end in parts)]
            equal([(first, end) for first, end in zip(ends, ends[1:])], parts, "the parts")
            assert all(of.headers.get("x-amz-copy-source-if-match") == etag for of in store.of("PART-COPY")), "other versions"
            # A short part at the end is read and sent.
            sent = sum(len(of.body) for of in store.of("PART"))
            assert not parts or ends[-1] + sent == size and sent < 8 * MIB and not store.of("COPY"), f"{parts}, {sent} bytes"


@row("a copy that answers 200 with an error removes nothing")
def copy_errors(_):
    failed = Answer(200, [("Content-Type", "application/xml")], b"<Error><Code>InternalError</Code><Message>no</Message></Error>")
    answers = {"an error": failed, "nothing": Answer(200), "text": Answer(200, [], b"no"), "cut": Answer(200, [], b"<CopyObjectRes"),
               "500": error(500, "InternalError"), "an empty result": xml("CopyObjectResult"),
               "blanks, then an error": failed._replace(body=b'<?xml version="1.0"?>\n' + b" " * 1000 + failed.body)}
    current = {}

    def hook(request):
        is_end = request.kind == ("COMPLETE" if request.key.startswith("large") else "COPY")
        return current["answer"] if is_end or request.kind == "PART-COPY" and current["parts"] else None

    with Store({"small": b"small", "large": Zeros(600 * MIB)}, hook) as store, mounted(store, "timeout=5s") as mount:
        names(mount)
        for title, current["answer"] in answers.items():
            for name, current["parts"] in (("small", False), ("large", False), ("large", True)):
                named(title, fails, mount, "mv", name, f"{name}-moved")
                equal({"small", "large"}, set(store.contents()), f"{title}, {name}")
        assert store.wait_for(lambda: not store.uploads), f"uploads stay: {store.uploads}"


@row("sequential reads request each byte once")
def sequential(_):
    size = 256 * MIB
    local = workdir() / "contents"
    block = pattern(MIB)
    data = b"".join(number.to_bytes(4, "big") + block[4:] for number in range(size // MIB))
    local.write_bytes(data)
    for readers in (1, 4):
        with Store({"file": data}) as store, mounted(store) as mount:
            names(mount)
            together(*[lambda mount=mount: works(mount, "cmp", local, "file")] * readers)
            sent = sum(end - first for first, end in (of.range_of(size) or (0, size) for of in store.of("GET")))
            assert sent <= size * 1.02, f"{readers} readers: {sent / size:.3f} times the bytes"
            assert len(store.of("GET")) <= size // MIB, f"{readers} readers: {len(store.of('GET'))} requests"
    local.unlink()


# ---- writes ----


def faults(**kinds):
    """A hook that answers each kind of request so, while it is armed."""
    armed = threading.Event()

    def hook(request):
        return kinds.get(request.kind.replace("-", "_")) if armed.is_set() else None

    return hook, armed


@row("a refused overwrite leaves the old file")
def refused_writes(_):
    large = pattern(9 * MIB)
    local = workdir() / "9-mib"
    local.write_bytes(large)
    zeros = "dd if=/dev/zero bs=1M conv=notrunc,fsync status=none".split()
    writers = {
        "old": overwrite("old"), "grow": append("grow", "this is much longer"), "cut": ["truncate", "-s", "3", "cut"],
        "short": ["cp", local, "short"], "large": append("large"), "large-cut": ["truncate", "-s", "3", "large-cut"],
        "large-old": overwrite("large-old"), "large-over": [*zeros, "of=large-over", "count=2"],
        "large-longer": [*zeros, "of=large-longer", "count=1", "seek=20"],
    }
    objects = {name: large if name.startswith("large") else b"old content" for name in writers}

    def one(status, kinds):
        refusal = error(status, "AccessDenied" if status == 403 else "InternalError")
        hook, armed = faults(**dict.fromkeys(kinds, refusal))
        with Store(objects, hook) as store, mounted(store) as mount:
            works(mount, "cat", *objects)
            armed.set()
            together(*(lambda words=words: fails(mount, *words) for words in writers.values()))

            def sizes():
                return [int(size) for size in works(mount, "stat", "-c", "%s", *objects).split()]

            # After an error that may pass, the daemon tries once more when the file was closed.
            wanted = [len(data) for data in objects.values()]
            for name, data in objects.items():
                assert wait_for(lambda: works(mount, "cat", name) == data, LIMIT_S, 0.2), f"{name} has its new contents"  # noqa: B023
            equal(wanted, sizes(), "the sizes")
            armed.clear()
            for _ in range(2):
                copy = workdir() / f"copy-{id(mount)}"
                for name, data in objects.items():
                    equal(data, works(mount, "cat", name), f"the contents of {name}")
                    works(mount, "cp", name, copy)
                    equal(data, copy.read_bytes(), f"the copy of {name}")
                drop_caches(3)
                equal(wanted, sizes(), "after the caches were dropped")
            equal(objects, store.contents())
            assert store.wait_for(lambda: not store.uploads), f"uploads stay: {store.uploads}"

    together(*(lambda status=status, kinds=kinds: named(f"{status}, {kinds}", one, status, kinds) for status, kinds in (
        (403, ("PUT", "BEGIN")), (403, ("PUT", "PART", "PART_COPY", "COMPLETE")), (403, ("PUT", "COMPLETE")), (409, ("PUT", "COMPLETE")),
        (500, ("PUT", "BEGIN")), (500, ("PUT", "COMPLETE")))))


@row("the reply to an exclusive creation is lost")
def lost_creation(_):
    current = {}

    def hook(request):
        if request.kind == "PUT" and request.key in current:
            current.pop(request.key)
            if request.key == "ours":
                store.honest(request)
            else:
                store.objects[request.key] = Object(b"other", [("x-amz-meta-lightfoot-created", "0" * 32)])
            return raw()
        return None

    with Store(hook=hook) as store, mounted(store) as mount:
        current |= {"ours": True, "theirs": True}
        create = "write({!r}, b'mine', os.O_WRONLY | os.O_CREAT | os.O_EXCL)"
        equal("ok", call(mount, create.format("ours")))
        equal("EEXIST", call(mount, create.format("theirs")))
        equal("EEXIST", call(mount, create.format("ours")))
        equal({"ours": b"mine", "theirs": b"other"}, store.contents())


@row("an upload that fails is aborted, and old ones at the start")
def uploads(_):
    failed = Answer(200, [], b'<?xml version="1.0"?>\n   <Error><Code>InternalError</Code><Message>no</Message></Error>')
    local = workdir() / "20-mib"
    local.write_bytes(bytes(20 * MIB))
    for kind, answer in (("COMPLETE", failed), ("COMPLETE", Answer(200)), ("COMPLETE", error(403, "AccessDenied")),
                         ("COMPLETE", Answer(200, [], b"<Complete")), ("PART", error(403, "AccessDenied")),
                         ("PART", Answer(200)), ("BEGIN", failed), ("BEGIN", Answer(200)), ("COMPLETE", raw())):
        with Store({"old": b"old"}, lambda request: answer if request.kind == kind else None) as store:  # noqa: B023
            with mounted(store, "timeout=10s") as mount:
                fails(mount, "cp", local, "old")
                equal({"old": b"old"}, store.contents(), f"{kind} {answer}")
                assert store.wait_for(lambda: not store.uploads), f"{kind} {answer}: an upload stays"  # noqa: B023
    day, now = 24 * 3600, time.time()
    with Store() as store:
        left = {"old": Upload("pre/old", now - 3 * day), "young": Upload("pre/young", now - day / 2),
                "foreign": Upload("prefix/old", now - 3 * day), "other": Upload("other", now - 3 * day),
                "used": Upload("pre/used", now - 3 * day), "blank": Upload("pre/old ", now - 3 * day)}
        left["used"].parts[1] = b"part", now
        left["old"].parts[1] = b"part", now - 2 * day
        store.uploads.update(left)
        # A server that does not filter.
        store.hook = lambda request: request.query.update(prefix="") if request.kind == "UPLOADS" else None
        with mounted(store, prefix="pre") as mount:
            assert store.wait_for(lambda: "old" not in store.uploads and "blank" not in store.uploads), "they stay"
            names(mount)
        equal({"young", "foreign", "other", "used"}, set(store.uploads))
        store.uploads["old"] = left["old"]
        with mounted(store, "ro", prefix="pre") as mount:
            names(mount)
        assert not store.of("ABORT")[2:], "a mount with ro changes the store"


@row("two clients write one object, and an open file is of one version")
def two_writers(_):
    first, other = pattern(12 * MIB), bytes(reversed(pattern(12 * MIB)))
    with Store({"file": b"first", "large": first, "emptied": b"first"}) as store, mounted(store) as mount:
        change = (f"f = os.open('file', os.O_RDWR); os.pwrite(f, b'mine', 0); open({str(workdir() / 'ready')!r}, 'w').close(); "
                  "sys.stdin.read(); os.close(f)")
        (workdir() / "ready").unlink(missing_ok=True)
        with subprocess.Popen([sys.executable, "-IS", "-c", CALLS, change], cwd=mount.dir, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as writer:
            assert wait_for((workdir() / "ready").exists, LIMIT_S), "no write"
            store.objects["file"] = Object(b"other client")
            said, _ = writer.communicate(timeout=LIMIT_S)
        equal("ESTALE", said.strip())
        equal(b"other client", store.contents()["file"])
        equal(b"other client", works(mount, "cat", "file"))
        with open(mount.dir / "large", "rb", buffering=0) as file:
            equal(first[:1000], os.pread(file.fileno(), 1000, 0))
            store.objects["large"] = Object(other)
            found = os.pread(file.fileno(), 3 * MIB, 6 * MIB)
            assert found in (first[6 * MIB:9 * MIB], other[6 * MIB:9 * MIB]), "bytes of two versions"
        assert all("if-match" in of.headers for of in store.of("GET", "large")), "a range of any version"


# ---- answers ----

DATA = pattern(300_000)


def gzipped(answer):
    return more(answer._replace(body=gzip.compress(answer.body)), ("Content-Encoding", "gzip"))


def other_range(honest, _):
    """Bytes of the beginning, and what says so."""
    size = len(honest.body)
    first = 0 if honest.body != DATA[:size] else min(1000, len(DATA) - size)
    return changed(honest._replace(body=DATA[first:first + size]), content_range=f"bytes {first}-{first + size - 1}/{len(DATA)}")


def chunked(body, extension=b"", end=b"0\r\n\r\n"):
    return b"%x%s\r\n%s\r\n%s" % (len(body), extension, body, end)


def chunked_head(honest):
    return head_of(more(honest, ("Transfer-Encoding", "chunked")))


# The server's answer to a request for contents, from the honest answer and the request; whether the reader must get the right bytes.
READS = {
    "content-length too long": (lambda of, _: changed(of, content_length=len(of.body) + 100, connection="close"), False),
    "content-length too short": (lambda of, _: changed(of, content_length=len(of.body) - 100, connection="close"), False),
    "content-length negative": (lambda of, _: changed(of, content_length=-1), False),
    "content-length of 2^64": (lambda of, _: changed(of, content_length=2**64), False),
    "content-length of 2^63": (lambda of, _: changed(of, content_length=2**63), False),
    "content-length of words": (lambda of, _: changed(of, content_length="many"), False),
    "two content-lengths": (lambda of, _: more(of, ("Content-Length", len(of.body)), ("Content-Length", 5)), False),
    "content-range of another range": (lambda of, _: changed(of, content_range=f"bytes 7-{6 + len(of.body)}/{len(DATA)}"), False),
    "content-range of words": (lambda of, _: changed(of, content_range="some bytes"), False),
    "content-range of another size": (lambda of, _: changed(
        of, content_range=of.headers[-1][1].partition("/")[0] + "/" + str(2**62)), False),
    "no content-range": (lambda of, _: changed(of, content_range=None), False),
    "another range": (other_range, False),
    "several ranges": (lambda of, _: Answer(206, [("Content-Type", "multipart/byteranges; boundary=b")], b"--b\r\n\r\n" + of.body), False),
    "more bytes than asked": (lambda of, _: of._replace(body=of.body + b"more"), False),
    "fewer bytes than asked": (lambda of, _: of._replace(body=of.body[:-1]), False),
    "half of the bytes": (lambda of, _: changed(of._replace(body=of.body[:len(of.body) // 2]), content_range=of.headers[-1][1].replace(
        f"-{int(of.headers[-1][1].split('-')[1].split('/')[0])}/", f"-{int(of.headers[-1][1].split()[1].split('-')[0]) + len(of.body) // 2 - 1}/")), False),
    "no bytes": (lambda of, _: of._replace(body=b""), False),
    "200 with the whole object": (lambda of, _: Answer(200, of.headers[:2], DATA), False),
    "200 with the beginning": (lambda of, _: Answer(200, of.headers[:2], DATA[:len(of.body)]), False),
    "200 with nothing": (lambda of, _: Answer(200, of.headers[:2]), False),
    "201": (lambda of, _: of._replace(status=201), False),
    "204": (lambda of, _: Answer(204), False),
    "304": (lambda of, _: Answer(304), False),
    "416": (lambda of, _: error(416, "InvalidRange"), False),
    "404": (lambda of, _: error(404, "NoSuchKey"), False),
    "412": (lambda of, _: error(412, "PreconditionFailed"), False),
    "status 999": (lambda of, _: of._replace(status=999), False),
    "status 99999": (lambda of, _: of._replace(status=99999), False),
    "gzip": (lambda of, _: gzipped(of), False),
    "gzip in name only": (lambda of, _: more(of, ("Content-Encoding", "gzip")), False),
    "deflate, br": (lambda of, _: more(of, ("Content-Encoding", "deflate, br")), False),
    "an ETag that changes": (lambda of, request: changed(of, etag=f'"{time.monotonic_ns()}"'), False),
    "no ETag": (lambda of, _: changed(of, etag=None), False),
    "an ETag of 60 KiB": (lambda of, _: changed(of, etag='"' + "e" * 60000 + '"'), False),
    "year 9999": (lambda of, _: changed(of, last_modified="Fri, 31 Dec 9999 23:59:59 GMT"), False),
    "time of words": (lambda of, _: changed(of, last_modified="then"), False),
    "HTTP/1.0": (lambda of, _: raw(head_of(of, "HTTP/1.0"), of.body), True),
    "HTTP/1.0 without a length": (lambda of, _: raw(head_of(of, "HTTP/1.0", has_body=False), of.body), False),
    "HTTP/9.9": (lambda of, _: raw(head_of(of, "HTTP/9.9"), of.body), False),
    "no head": (lambda of, _: raw(of.body), False),
    "chunked": (lambda of, _: raw(chunked_head(of), chunked(of.body)), True),
    "chunked and a length": (lambda of, _: raw(chunked_head(more(of, ("Content-Length", 7))), chunked(of.body)), False),
    "chunked, cut": (lambda of, _: raw(chunked_head(of), chunked(of.body, end=b"")), False),
    "chunked, extensions": (lambda of, _: raw(chunked_head(of), chunked(of.body, b";a=b;c")), True),
    "chunked, extensions without an end": (lambda of, _: raw(chunked_head(of), b"5", and_then=forever(b";extension=value")), False),
    "chunked, tiny chunks with extensions without an end": (
        lambda of, _: raw(chunked_head(of), and_then=forever(b"1;" + b"e" * 1000 + b"\r\n \r\n")), False),
    "chunked, zeros without an end": (lambda of, _: raw(chunked_head(of), and_then=forever(b"0")), False),
    "chunked, a chunk of 2^64": (lambda of, _: raw(chunked_head(of), b"1" + b"0" * 16 + b"\r\n", of.body), False),
    "chunked, trailers without an end": (
        lambda of, _: raw(chunked_head(of), chunked(of.body, end=b"0\r\n"), and_then=forever(b"x-trailer: value\r\n")), False),
    "1 MiB of headers": (lambda of, _: more(of, *(("x-amz-meta-many", "v" * 1000) for _ in range(1000))), False),
    "one header of 1 MiB": (lambda of, _: more(of, ("x-amz-meta-large", "v" * MIB)), False),
    "10,000 headers": (lambda of, _: more(of, *((f"x-{number}", "") for number in range(10000))), False),
    "90 headers of metadata": (lambda of, _: more(of, *((f"x-amz-meta-{number}", "v" * 100) for number in range(90))), False),
    "headers without an end": (lambda of, _: raw(b"HTTP/1.1 206 OK\r\n", and_then=forever(b"x-header: value\r\n")), False),
    "a status without an end": (lambda of, _: raw(b"HTTP/1.1 206 ", and_then=forever(b"O")), False),
    "zero bytes in a header": (lambda of, _: more(of, ("x-amz-meta-zero", "a\0b")), False),
    "other bytes in a header": (lambda of, _: more(of, ("x-amz-meta-other", "\xff\xfe\x80")), False),
    "100-continue without an end": (lambda of, _: forever(b"HTTP/1.1 100 Continue\r\n\r\n"), False),
    "100-continue 1,000 times": (lambda of, _: raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000, head_of(of), of.body), False),
    "103 with headers": (lambda of, _: raw(b"HTTP/1.1 103 Early\r\nx-header: value\r\n\r\n", head_of(of), of.body), False),
    "101": (lambda of, _: raw(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", of.body), False),
    "503 and Retry-After": (lambda of, _: more(error(503, "SlowDown"), ("Retry-After", 100000)), False),
    "429 and Retry-After": (lambda of, _: more(error(429, "TooManyRequests"), ("Retry-After", 100000)), False),
    "500 without an end": (lambda of, _: raw(b"HTTP/1.1 500 No\r\n\r\n<Error>", and_then=forever(b"<Code>a</Code>")), False),
    "a close": (lambda of, _: raw(), False),
    "a close in the body": (lambda of, _: raw(head_of(of), of.body[:1000]), False),
    "an answer before": (lambda of, _: raw(head_of(of), of.body, head_of(error(500, "No")), b"no"), False),
    "TLS": (lambda of, _: raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500)), False),
    "HTTP/2": (lambda of, _: raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(100)), False),
    "contents without an end": (lambda of, _: raw(b"HTTP/1.1 206 OK\r\n\r\n", of.body, and_then=forever(b"more")), False),
}


@row("odd answers to reads: the right bytes or an error", is_long=True)
def odd_reads(_):
    objects = {title.replace("/", "|"): DATA for title in READS} | {"right": DATA}

    def hook(request):
        title = request.key.replace("|", "/")
        return READS[title][0](store.honest(request), request) if request.kind == "GET" and title in READS else None

    def one(title, must):
        found = is_right(mount, title.replace("/", "|"), DATA)
        assert found or not must, f"{title}: an error"
        is_right(mount, "right", DATA)

    with Store(objects, hook) as store, mounted(store, "timeout=1s") as mount:
        equal(sorted(objects), names(mount))
        in_groups([lambda title=title, must=must: named(title, one, title, must) for title, (_, must) in READS.items()])
        assert is_right(mount, "right", DATA), "the others suffered"
        # The bytes that arrived of each were dropped.
        together(*(lambda title=title: do(mount, "sha256sum", title.replace("/", "|")) for title in READS))
        works(mount, "bash", "-c", "stat * >/dev/null; true")


# Headers of the answer to HEAD that differ from the listing, or that cannot be.
HEADS = {
    "longer": {"content_length": 400_000}, "shorter": {"content_length": 100_000}, "empty": {"content_length": 0},
    "2^62": {"content_length": 2**62}, "2^63": {"content_length": 2**63}, "2^64": {"content_length": 2**64},
    "negative": {"content_length": -1}, "words": {"content_length": "many"}, "none": {"content_length": None},
    "year 9999": {"last_modified": "Fri, 31 Dec 9999 23:59:59 GMT"}, "year 1601": {"last_modified": "Mon, 01 Jan 1601 00:00:00 GMT"},
    "time of words": {"last_modified": "then"}, "no time": {"last_modified": None}, "no ETag": {"etag": None},
    "an ETag of 60 KiB": {"etag": '"' + "e" * 60000 + '"'}, "an ETag with a quote": {"etag": 'a"b'}, "another ETag": {"etag": '"other"'},
    "an empty ETag": {"etag": ""}, "a weak ETag": {"etag": 'W/"e"'}, "a directory": {"content_type": "application/x-directory"},
    "gzip": {"content_encoding": "gzip"}, "range": {"content_range": "bytes 0-1/2"},
    "large metadata": {"x_amz_meta_large": "v" * 70000}, "other bytes": {"x_amz_meta_lightfoot_created": "\xff\x80"},
}


@row("answers to HEAD that contradict the listing: the right bytes or an error", is_long=True)
def odd_heads(_):
    objects = {title: DATA for title in HEADS}

    def hook(request):
        return changed(store.honest(request), **HEADS[request.key]) if request.kind == "HEAD" and request.key in HEADS else None

    def one(title):
        for act in ((), ["stat", title], ["touch", "-c", title]):
            if act:
                do(mount, *act)
            found = do(mount, "cat", title)
            # Nobody can know that the object is longer than the store says twice.
            wanted = DATA[:HEADS[title].get("content_length", 0) or 0] if title in ("shorter", "empty") else DATA
            # A longer size that arrives between a read and its reply: the kernel shows zeros behind the contents.
            zeros = b"\0" * (len(found.stdout) - len(DATA)) if title in ("longer", "2^62") else b""
            assert found.returncode or found.stdout in (DATA, wanted, DATA + zeros), f"{len(found.stdout)} bytes"
        done = do(mount, *append(title))
        kept = store.contents()[title]
        assert kept in (DATA, DATA + b"end") or title in ("shorter", "empty") or done.returncode, f"{done}, {len(kept)} bytes"

    with Store(objects, hook) as store, mounted(store, "timeout=1s,ttl=0") as mount:
        together(*(lambda title=title: named(title, one, title) for title in HEADS))
    with Store(objects, hook) as store, mounted(store, "timeout=1s") as mount:
        # Without a listing before.
        together(*(lambda title=title: named(title, one, title) for title in HEADS))


# The server's answer to a write that it has done, from the honest answer.
WRITES = {
    "no ETag": lambda of: changed(of, etag=None), "an ETag of 60 KiB": lambda of: changed(of, etag='"' + "e" * 60000 + '"'),
    "an empty ETag": lambda of: changed(of, etag=""), "another ETag": lambda of: changed(of, etag='"other"'),
    "201": lambda of: of._replace(status=201), "204": lambda of: of._replace(status=204),
    "206": lambda of: of._replace(status=206), "404": lambda of: error(404, "NoSuchKey"), "304": lambda of: Answer(304),
    "200 with an error": lambda of: of._replace(body=b"<Error><Code>InternalError</Code></Error>"),
    "HTTP/1.0": lambda of: raw(head_of(of, "HTTP/1.0")), "no head": lambda of: raw(b"no"),
    "a body without an end": lambda of: raw(b"HTTP/1.1 200 OK\r\n\r\n", and_then=forever(b"body")),
    "headers without an end": lambda of: raw(b"HTTP/1.1 200 OK\r\n", and_then=forever(b"x-header: value\r\n")),
    "100-continue without an end": lambda of: forever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "10,000 headers": lambda of: more(of, *((f"x-{number}", "") for number in range(10000))),
    "503 and Retry-After": lambda of: more(error(503, "SlowDown"), ("Retry-After", 100000)),
    "a lost reply": lambda of: raw(), "content-length too long": lambda of: changed(of, content_length=100, connection="close"),
}


@row("odd answers to writes: what is read is what the store has", is_long=True)
def odd_writes(_):
    objects = {title.replace("/", "|"): b"old" for title in WRITES}
    large = pattern(9 * MIB)

    def hook(request):
        title = request.key.replace("|", "/").removeprefix("new ")
        return WRITES[title](store.honest(request)) if request.kind in ("PUT", "PART", "COMPLETE") and title in WRITES else None

    def one(title, name, data, source):
        done = do(mount, "cp", source, name)
        kept = store.contents().get(name)
        assert done.returncode or kept == data, f"it succeeded, and the store has {kept!r:.100}"

        def agrees():
            # After an error, the daemon tries once more when the file was closed.
            found = do(mount, "cat", name)
            return found.returncode or found.stdout == store.contents().get(name)

        assert agrees() or done.returncode and wait_for(agrees, LIMIT_S, 0.5), "the mount shows other contents than the store has"

    sources = {b"new contents": workdir() / "small-contents", large: workdir() / "large-contents"}
    for data, source in sources.items():
        source.write_bytes(data)
    with Store(objects, hook) as store, mounted(store, "timeout=1s") as mount:
        for data, source in sources.items():
            in_groups([lambda title=title, prefix=prefix: named(title, one, title, prefix + title.replace("/", "|"), data, source)  # noqa: B023
                       for title in WRITES for prefix in ("", "new ")
                       # A try to send a part may take minutes: a second for each 32 KiB.
                       if data is not large or not title.startswith("100-continue")])


# The server's answer to a listing of three names, from the honest answer.
LISTS = {
    "content-length too long": lambda of: changed(of, content_length=len(of.body) + 100, connection="close"),
    "content-length too short": lambda of: changed(of, content_length=len(of.body) - 100, connection="close"),
    "gzip": gzipped, "204": lambda of: Answer(204), "404": lambda of: error(404, "NoSuchBucket"), "nothing": lambda of: Answer(200),
    "206": lambda of: of._replace(status=206), "503": lambda of: more(error(503, "SlowDown"), ("Retry-After", 100000)),
    "200 with an error": lambda of: error(200, "InternalError"), "another document": lambda of: xml("ListAllMyBucketsResult"),
    "HTTP/1.0": lambda of: raw(head_of(of, "HTTP/1.0"), of.body), "a close in the body": lambda of: raw(head_of(of), of.body[:-200]),
    "10,000 headers": lambda of: more(of, *((f"x-{number}", "") for number in range(10000))),
    "100-continue without an end": lambda of: forever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "chunked, extensions without an end": lambda of: raw(chunked_head(of), b"5", and_then=forever(b";extension=value")),
    "truncated without a token": lambda of: of._replace(body=of.body.replace(b"<IsTruncated>false", b"<IsTruncated>true")),
    "HTML": lambda of: Answer(200, [("Content-Type", "text/html")], b"<html><body>Sign in</body></html>"),
}


@row("odd answers to listings: all names or an error", is_long=True)
def odd_lists(_):
    wanted = ["a", "b", "c"]
    objects = {f"{title.replace('/', '|')}/{name}": b"data" for title in LISTS for name in wanted}

    def hook(request):
        title = request.query.get("prefix", "").rstrip("/").replace("|", "/")
        is_listing = request.kind == "LIST" and title in LISTS and "max-keys" not in request.query
        return LISTS[title](store.honest(request)) if is_listing else None

    def one(title):
        done = do(mount, "ls", title.replace("/", "|"))
        assert done.returncode or done.stdout.decode().split() == wanted, f"{done.stdout!r}"

    with Store(objects, hook) as store, mounted(store, "timeout=1s") as mount:
        together(*(lambda title=title: named(title, one, title) for title in LISTS))


# ---- all ----


@command("hostile-store", "About 1 minute", argument("--only", "", "only rows whose title has this word", metavar="WORD"),
         argument("--all", False, "also the long rows of odd answers"), LIST)
def hostile_store(options, verdict):
    """Mounts a bucket whose server lies, hangs, never ends, or loses answers.

    Programs must get the right bytes and names or an error, within limits of time and memory, and objects must stay."""
    has_long = options.all or options.only
    chosen = [(title, function) for title, function, is_long in ROWS if options.only in title and (has_long or not is_long)]
    if options.list:
        print("\n".join(title for title, _ in chosen))
        return
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret", AWS_SESSION_TOKEN="token", AWS_REGION="us-east-1")
    workdir()
    lightfoot()
    places, results = threading.Semaphore(AT_ONCE), queue.Queue()

    def run_row(title, function):
        with places:
            begun = time.monotonic()
            try:
                function(options)
                problem = None
            except Exception as error_:  # Reported by the main thread.
                problem = error_
            results.put((title, time.monotonic() - begun, problem))

    for title, function in chosen:
        threading.Thread(target=run_row, args=(title, function), daemon=True).start()
    for _ in chosen:
        title, seconds, problem = results.get()
        with verdict.catch(title):
            if problem:
                raise problem
            verdict.ok(f"{title} ({seconds:.0f} s)")
