"""`attacks`: two users attack a mount of root's under every combination of options that decides about permissions. Not a
program; the attacks are in attack_table.py, the users in actors.py.
"""

import collections
import inspect
import os
import re
import shlex
import time
import traceback

from mounts.actors import ROOT, Actor, Stuck
from mounts.attack_table import ATTACKS, Place
from mounts.machine import ROOT as REPOSITORY
from mounts.machine import run, say
from mounts.mount import Mount, plain, workdir
from mounts.peers import lightfoot
from mounts.runner import LIST, argument, command

# Combinations whose attackers are at work at once; most of them wait for caches to expire.
AT_ONCE = 6
WORKER_LIMIT_S = 60
RAM, HOST = "ram:", "{source}"

# `suid`, `dev`: what must hold on the mount. `lacks`: what attacks may need and this does not have, for the reason that
# docs/mounting.md gives.
# `of_source`: the directory is one of two sources in a file of mounts, with these options.
Combination = collections.namedtuple("Combination", "name kind options suid dev lacks source limit of_source")


def combination(kind, options="", suid=False, dev=False, lacks=(), source=None, limit=None, of_source=None, name=None):
    word = "ram" if kind == RAM else "host"
    name = name or f"{word}: {options or 'default'}"
    return Combination(name, kind, options, suid, dev, frozenset(lacks), source, limit, of_source)


# Search permission is not checked again for names that the kernel knows.
CACHED = ("searched",)
# Nothing behind the mount changes, by the user's promise.
PROMISED = ("changes",)
# ACLs are off.
NO_ACLS = ("acl",)

COMBINATIONS = [
    combination(RAM),
    combination(RAM, "own_permissions", lacks=CACHED),
    combination(RAM, "own_permissions,entry_timeout=0,attr_timeout=0"),
    combination(RAM, "no_open"),
    combination(RAM, "own_permissions,no_open", lacks=CACHED),
    combination(RAM, "writeback"),
    combination(RAM, "writeback,own_permissions,entry_timeout=0"),
    combination(RAM, "noacl", lacks=NO_ACLS),
    combination(RAM, "locks"),
    combination(RAM, "suid,dev", suid=True, dev=True),
    combination(RAM, "suid,dev,own_permissions,entry_timeout=0", suid=True, dev=True),
    combination(RAM, "attr_timeout=0,entry_timeout=0,negative_timeout=0"),
    combination(RAM, source="ram:size=1m,nr_inodes=16,mode=0777", name="ram: small"),
    combination(HOST),
    combination(HOST, "suid,dev", suid=True, dev=True),
    combination(HOST, "always"),
    combination(HOST, "ttl=200ms"),
    combination(HOST, "ttl=200ms,negative_timeout=1h"),
    combination(HOST, "attr_timeout=0,entry_timeout=0,negative_timeout=0"),
    combination(HOST, "watch,attr_timeout=1"),
    combination(HOST, "exclusive", lacks=PROMISED),
    combination(HOST, "exclusive,own_permissions,entry_timeout=0", lacks=PROMISED),
    combination(HOST, "own_permissions", lacks=CACHED),
    combination(HOST, "own_permissions,entry_timeout=0"),
    combination(HOST, "own_permissions,entry_timeout=0,suid,dev", suid=True, dev=True),
    combination(HOST, "own_permissions,no_open", lacks=CACHED),
    combination(HOST, "writeback"),
    combination(HOST, "writeback,own_permissions,entry_timeout=0"),
    combination(HOST, "writeback,exclusive,suid,dev", lacks=PROMISED, suid=True, dev=True),
    combination(HOST, "passthrough"),
    combination(HOST, "passthrough,suid,dev", suid=True, dev=True),
    combination(HOST, "passthrough,own_permissions,entry_timeout=0"),
    combination(HOST, "acl"),
    combination(HOST, "noacl", lacks=NO_ACLS),
    combination(HOST, "locks"),
    combination(HOST, "uid=1001"),
    combination(HOST, "uid=1001,gid=1001,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,umask=000,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,writeback,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,passthrough,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,own_permissions,entry_timeout=0,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,exclusive,suid,dev", suid=True, dev=True),
    combination(HOST, of_source="ttl=200ms", name="a file of mounts: default"),
    combination(HOST, "suid,dev", of_source="ttl=200ms,nosuid,nodev", name="a file of mounts: one source with nosuid,nodev"),
    combination(HOST, limit=256, name="host: few descriptors"),
    combination(HOST, "cache=1m,ttl=1h", name="host: small cache"),
    # Requests that make no file name no user.
    combination(RAM, "idmap"),
    combination(RAM, "idmap,suid,dev", suid=True, dev=True),
    combination(RAM, "idmap,locks,nowriteback"),
    combination(RAM, "idmap,no_open"),
    combination(HOST, "idmap"),
    combination(RAM, "locks", name="ram: many locks"),
    combination(HOST, "acl,locks,suid,dev", suid=True, dev=True),
    combination(HOST, "uid=1001,locks,acl"),
    combination(HOST, "uid=1001,gid=1001,umask=022"),
    # Options that decide about no permission: the answers stay the same.
    combination(RAM, "threads=2,no_clone_fd,no_uring,pin=off,max_names=1000,max_background=8,max_write=64k,fsname=data"),
    combination(RAM, "strictatime,kernel_cache,nonempty,max_threads=2,request_timeout=60,security_ctx"),
    combination(RAM, "noatime,nodiratime", source="ram:size=1g,nr_inodes=1m,mode=0777,usrquota_block_hardlimit=1g,"
                "usrquota_inode_hardlimit=1m,uid=0,gid=0,cache=64m", name="ram: quotas"),
    combination(HOST, "cross,fds=64,call_timeout=30s,auto_cache,negative_timeout=1"),
]

# Options that are not a column, with the reason.
WITHOUT_COLUMN = {
    "ro": "no user changes anything",
    "noexec": "no program runs",
    "nosymfollow": "links are not followed",
    "casefold": "the names of the attacks differ in case",
    "nr_blocks": "the same as size",
    "auto_unmount": "needs fusermount3, which mounts as any other mount",
    "endpoint": "s3: needs a server; owners and modes are in the tests of objectfs",
    "region": "s3:",
    "rename_dirs": "s3:",
    "metadata": "s3: the bits of another user are refused by crates/objectfs/tests/it/s3/attributes.rs", "nometadata": "s3:",
    "symlinks": "s3:", "nosymlinks": "s3:",
    "timeout": "s3:",
}
# The options that switch off the one before them; what they do is the default.
OPPOSITES = ("rw default_permissions open nolocks nodev nosuid nowatch stay atime relatime diratime exec symfollow "
             "nopassthrough auto_cache clone_fd uring nowriteback")


def columns():
    """The options of all combinations, with those of their sources."""
    for of in COMBINATIONS:
        for words in (of.options, of.of_source or "", (of.source or "").partition(":")[2]):
            yield from (word.partition("=")[0] for word in words.split(",") if word)


def check_columns(verdict):
    """Each option of crates/cli/src/options/table.rs, and of the tables beside it, is a column or has a reason why not."""
    source = (REPOSITORY / "crates/cli/src/options").glob("**/*.rs")
    text = "".join(file.read_text() for file in source if "table" in str(file))
    rows = re.findall(r'\b(?:switch|value)\(\s*"(\w+)"', text)
    opposites = re.findall(r'\bswitch\(\s*"\w+",\s*"(\w+)"', text)
    known = set(columns()) | set(WITHOUT_COLUMN) | set(OPPOSITES.split()) | {"allow_other"}
    lacking = sorted((set(rows) | set(opposites)) - known)
    unknown = sorted((set(WITHOUT_COLUMN) | set(OPPOSITES.split())) - set(rows) - set(opposites))
    if len(rows) < 40 or lacking or unknown:
        verdict.fail(f"columns: {len(rows)} options; without a column: {lacking}; not an option: {unknown}")
    else:
        verdict.ok(f"each of {len(set(rows) | set(opposites))} options is a column, or has a reason why not")


def is_shown(of):
    """Whether the mount shows other owners or modes than those of the files."""
    return any(option.startswith(("uid=", "gid=", "umask=")) for option in of.options.split(","))


def is_small(of):
    """Whether it is compared with a small tmpfs."""
    return "size=1m" in (of.source or "")


def attacks_on(of, only):
    """The attacks that concern a combination."""
    special = [attack for attack in ATTACKS if attack.only == of.name]
    has = {"changes", "acl", "searched"} - of.lacks
    has |= {"host"} if of.kind == HOST else set()
    has |= {"suid"} if of.suid else set()
    has |= {"locks"} if "locks" in of.options.split(",") else set()
    if is_shown(of):
        chosen = [attack for attack in ATTACKS if "shown" in attack.needs]
    else:
        chosen = special or [attack for attack in ATTACKS if attack.only is None and attack.needs <= has]
    return [attack for attack in chosen if not only or only in attack.title]


# ---- one combination ----


def run_attacks(attacks, at, behind, wait):
    """The facts of each attack on the mount at `at`, by title. Attacks that wait do so together."""
    facts, waiting = {}, []

    def go_on(attack, steps):
        try:
            next(steps)
            waiting.append((attack, steps))
        except StopIteration as end:
            facts[attack.title] = end.value
        except Exception:  # What the attack met is what it reports.
            facts[attack.title] = {"the attack itself": traceback.format_exc(limit=-3)}

    for number, attack in enumerate(attacks):
        name = f"a{number}"
        os.mkdir(f"{behind}/{name}")
        os.chmod(f"{behind}/{name}", 0o755)
        place = Place(f"{at}/{name}", f"{behind}/{name}")
        if inspect.isgeneratorfunction(attack):
            go_on(attack, attack(place))
        else:
            go_on(attack, as_steps(attack, place))
    while waiting:
        wait()
        again, waiting[:] = list(waiting), []
        for attack, steps in again:
            go_on(attack, steps)
    return facts


def as_steps(attack, place):
    return attack(place)
    yield


def wait_s(of):
    """How long until every cache of a combination has expired."""
    options = dict(option.partition("=")[::2] for option in of.options.split(","))
    if of.kind == RAM or "exclusive" in options:
        return 0
    return 0.8 if options.get("ttl") == "200ms" or "always" in options else 2.3


def mount(of):
    """The mount of a combination, or the last line of why there is none."""
    # Not the kinds of mounts, which add options.
    options = ",".join(filter(None, ("allow_other", of.options)))
    try:
        if of.of_source:
            return file_of_mounts(of, options)
        before = ["prlimit", f"--nofile={of.limit}:{of.limit}"] if of.limit else []
        return plain(of.source or of.kind, options, of.name, before)
    except RuntimeError as why:
        return str(why).strip().splitlines()[-1]


def file_of_mounts(of, options):
    """A mount of a tree in memory, with the directory at /h."""
    text = '[[mount]]\nat="/"\nsource="ram:"\n[[mount]]\nat="/h"\nsource="{source}"\noptions="' + of.of_source + '"\n'
    serve = f"exec {shlex.quote(str(lightfoot()))} mount {{source}}.toml {{mountpoint}} -o {options}"
    mounted = Mount("custom", name=of.name, command=["sh", "-c", f"printf %s '{text}' > {{source}}.toml; {serve}"])
    mounted.dir, mounted.top = mounted.dir / "h", mounted.dir
    return mounted


def start(attacks, at, behind, seconds):
    """A process that attacks one mount. Between the halves of an attack it waits for `seconds`."""
    work = lambda _: run_attacks(attacks, at, behind, lambda: time.sleep(seconds))  # noqa: E731
    return attacks, Actor(ROOT, work, limit_s=WORKER_LIMIT_S)


def result(worker):
    """The facts, by title."""
    attacks, actor = worker
    try:
        return actor.result()
    except Stuck as why:
        say(f"note: {why}")
        return {attack.title: {"the attack itself": "no end"} for attack in attacks}


# ---- comparison ----


def differences(wanted, got, path=""):
    """Where two facts differ: (what, wanted, got), the first of each branch."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        keys = sorted(set(wanted) | set(got), key=str)
        return [found for key in keys
                for found in differences(wanted.get(key), got.get(key), f"{path}, {key}" if path else str(key))]
    if type(wanted) is type(got) and isinstance(wanted, (list, tuple)) and len(wanted) == len(got):
        return [found for at, (one, other) in enumerate(zip(wanted, got)) for found in differences(one, other, f"{path}[{at}]")]
    return [] if wanted == got else [(path, wanted, got)]


def compare(of, attacks, facts, oracle, all_facts, verdict):
    """Reports what differs from tmpfs; the titles of the attacks that passed."""
    for attack in attacks:
        wanted = attack.expected if attack.expected is not None else oracle[of.suid, of.dev, is_small(of)].get(attack.title)
        found = differences(wanted, facts.get(attack.title))
        if not found:
            yield attack.title
        else:
            more = f" (and {len(found) - 1} more)" if len(found) > 1 and not all_facts else ""
            verdict.fail(f"{of.name}: {attack.title}: " + "; ".join(
                f"{what}: {str(got)[-400:]}, not {wanted_}" for what, wanted_, got in (found if all_facts else found[:1])) + more)


def oracles(only):
    """What the attacks reach on tmpfs, by its flags and whether it is small."""
    variants, workers = {(of.suid, of.dev, is_small(of)) for of in COMBINATIONS}, {}
    for suid, dev, small in variants:
        at = workdir() / f"tmpfs-{suid:d}{dev:d}{small:d}"
        at.mkdir()
        size = "size=1m,nr_inodes=16" if small else "size=200m"
        flags = f"{size},mode=0777,{'suid' if suid else 'nosuid'},{'dev' if dev else 'nodev'}"
        run(["mount", "-t", "tmpfs", "-o", flags, "lightfoot-test", str(at)], 20)
        attacks = [attack for attack in ATTACKS if attack.expected is None and "shown" not in attack.needs
                   and (attack.only is None or small) and (not small or attack.only) and (not only or only in attack.title)]
        workers[suid, dev, small] = at, start(attacks, at, at, 0)
    facts = {variant: result(worker) for variant, (_, worker) in workers.items()}
    for variant, (at, _) in workers.items():
        run(["umount", "-l", str(at)], 20)
    for variant in facts:
        broken = [title for title, found in facts[variant].items() if "the attack itself" in found]
        if broken:
            raise RuntimeError(f"on tmpfs: {broken[0]}: {facts[variant][broken[0]]['the attack itself']}")
    return facts


@command("attacks", "About 1 minute", argument("--only", "", "only attacks whose title has this word", metavar="WORD"),
         argument("--on", "", "only combinations whose name has this word", metavar="WORD"),
         argument("--facts", False, "all facts of each failure, not only the first"), LIST)
def attack_all(options, verdict):
    """Attacks mounts of root's as two other users do, and compares what they reach with tmpfs.

    Every combination of options that decides about permissions is attacked; a line `refused` names one that lightfoot refuses."""
    chosen = [(of, attacks_on(of, options.only)) for of in COMBINATIONS if options.on in of.name]
    chosen = [(of, attacks) for of, attacks in chosen if attacks]
    if options.list:
        for of, attacks in chosen:
            say(f"{of.name}: {len(attacks)} attacks")
        return
    check_columns(verdict)
    lightfoot()
    oracle, passed, running, refused = oracles(options.only), collections.Counter(), [], 0

    def finish():
        of, attacks, mounted, worker = running.pop(0)
        passed.update(compare(of, attacks, result(worker), oracle, options.facts, verdict))
        mounted.dir = getattr(mounted, "top", mounted.dir)
        mounted.down()

    for of, attacks in chosen:
        mounted = mount(of)
        if isinstance(mounted, str):
            refused += 1
            say(f"refused - {of.name}: {mounted}")
            continue
        behind = mounted.backing if of.kind == HOST else mounted.dir
        running.append((of, attacks, mounted, start(attacks, mounted.dir, behind, wait_s(of))))
        if len(running) >= AT_ONCE:
            finish()
    while running:
        finish()
    for title, count in passed.items():
        verdict.ok(f"{title}: {count} combinations", count)
    say(f"{refused} combinations refused")
