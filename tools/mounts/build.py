"""`build`: a C project is copied to a mount and built there. Not a program."""

import hashlib
import os
import random
import time

from mounts.machine import need_program, run, say, table
from mounts.mount import Mount, workdir
from mounts.runner import OPTIONS, argument, command, on

MAKEFILE = """
CFLAGS = -O1 -Iinclude -MMD -MP -ffile-prefix-map=$(CURDIR)=.
objects = $(patsubst src/%.c,build/%.o,$(wildcard src/*.c))
all: program
program: libproject.a build/main.o
\t$(CC) -o $@ build/main.o libproject.a
libproject.a: $(filter-out build/main.o,$(objects))
\trm -f $@ && $(AR) rcD $@ $^
build/%.o: src/%.c | build
\t$(CC) $(CFLAGS) -c -o $@ $<
build:
\tmkdir -p build
clean:
\trm -rf build program libproject.a
-include $(wildcard build/*.d)
.PHONY: all clean
"""


def generate(at, count):
    """A project of `count` sources that call one another, each with a header; the same one every time."""
    dice = random.Random(4)
    for name in ("src", "include"):
        (at / name).mkdir(parents=True)
    (at / "Makefile").write_text(MAKEFILE)
    for number in range(count):
        (at / f"include/part{number}.h").write_text(
            f"#ifndef PART{number}_H\n#define PART{number}_H\nint part{number}(int x);\n#endif\n"
        )
        calls = sorted(dice.sample(range(number), min(3, number)))
        lines = ["#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>", f'#include "part{number}.h"']
        lines += [f'#include "part{other}.h"' for other in calls]
        lines += [f"static const int table{number}[] = {{" + ", ".join(str(dice.randrange(1000)) for _ in range(60)) + "};"]
        for inner in range(8):
            lines += [f"static int inner{inner}(int x)\n{{\n\tint sum = x;\n\tfor (int i = 0; i < 60; i++)",
                      f"\t\tsum = sum * {dice.randrange(3, 99)} + table{number}[(i + {inner}) % 60];\n\treturn sum;\n}}"]
        body = " + ".join([f"inner{inner}(x)" for inner in range(8)] + [f"part{other}(x / 2)" for other in calls[:1]])
        lines += [f"int part{number}(int x)\n{{\n\treturn {body};\n}}"]
        (at / f"src/part{number}.c").write_text("\n".join(lines) + "\n")
    (at / "src/main.c").write_text(
        "#include <stdio.h>\n" + "".join(f'#include "part{number}.h"\n' for number in range(count))
        + "int main(void)\n{\n\tunsigned sum = 0;\n" + "".join(f"\tsum += part{n}({n});\n" for n in range(count))
        + '\tprintf("%u\\n", sum);\n\treturn 0;\n}\n'
    )
    for number, path in enumerate(sorted(at.rglob("*"))):
        os.utime(path, ns=(10**18 + number * 10**9, 10**18 + number * 10**9 + 123456789))
    os.symlink("src/main.c", at / "entry.c")


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def copy_and_build(project, at, jobs):
    """({step: seconds}, {file: digest}, the program's output) of the project copied to `at` and built there."""
    times, start = {}, time.monotonic()

    def step(name, command):
        nonlocal start
        start = time.monotonic()
        text = run(command, 400, cwd=at).stdout
        times[name] = time.monotonic() - start
        return text

    start = time.monotonic()
    run(["cp", "-a", str(project), str(at)])
    times["cp -a"] = time.monotonic() - start
    run(["diff", "-r", "--no-dereference", str(project), str(at)])
    form = r"%P %y %m %s %T@ %l\n"
    lists = [sorted(run(["find", str(p), "-type", "f,l", "-printf", form]).stdout.splitlines()) for p in (project, at)]
    if lists[0] != lists[1]:
        raise AssertionError(f"cp -a: attributes differ: {sorted(set(lists[0]) ^ set(lists[1]))[:4]}")
    step("make", ["make", "-s", f"-j{jobs}"])
    idle = step("make, nothing to do", ["make", f"-j{jobs}"])
    if "Nothing to be done" not in idle:
        raise AssertionError(f"make had something to do a second time: {idle[-300:]}")
    digests = {str(path.relative_to(at)): digest(path) for path in sorted(at.glob("build/*.o"))}
    digests |= {name: digest(at / name) for name in ("program", "libproject.a")}
    output = run([str(at / "program")]).stdout
    os.utime(at / "include/part3.h")
    touched = step("make after touching a header", ["make", f"-j{jobs}"])
    if "part3.c" not in touched:
        raise AssertionError(f"make after touching part3.h did: {touched[-500:]}")
    if digest(at / "program") != digests["program"]:
        raise AssertionError("the program built again differs")
    step("make clean", ["make", "-s", "clean"])
    left = sorted(path.name for path in at.iterdir())
    if left != ["Makefile", "entry.c", "include", "src"]:
        raise AssertionError(f"make clean left {left}")
    return times, digests, output


@command("build", "1 minute", on("lightfoot-ram,lightfoot-host"), argument("--files", 120, "sources of the project"),
         argument("--jobs", os.cpu_count(), "jobs of make"), OPTIONS)
def build(options, verdict):
    """Copies a C project to a mount and builds it with make and gcc: all must be, byte for byte, what tmpfs gives.

    cp -a of the project, a build, a build with nothing to do, one header touched and rebuilt, make clean; with their times."""
    need_program("gcc")
    need_program("make")
    project = workdir() / "project"
    generate(project, options.files)
    rows, wanted = [], None
    for kind in ["tmpfs"] + [kind for kind in options.on.split(",") if kind != "tmpfs"]:
        with verdict.catch(kind), Mount(kind, options.options) as mount:
            times, digests, output = copy_and_build(project, mount.dir / "project", options.jobs)
            wanted = wanted or (digests, output)
            differing = [name for name in wanted[0] if digests.get(name) != wanted[0][name]]
            assert (digests, output) == wanted, f"other than on tmpfs: {differing[:5]}, output {output!r}"
            verdict.ok(f"{kind}: copied and built, {len(digests)} files and the program's output as on tmpfs")
            rows += [] if rows else [["seconds", *times]]
            rows.append([kind, *(f"{seconds:.2f}" for seconds in times.values())])
    if rows:
        say(table(rows))
