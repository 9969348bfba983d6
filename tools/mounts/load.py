"""Work on a mount whose time is measured. Not a program."""

import resource
import time

from mounts.machine import run
from mounts.peers import compiled


def measured(mount, command, **more):
    """(what it printed, seconds, processor time of the command and of the mount's daemon in seconds). Processor time is steadier
    than the time on the wall where other programs run."""

    def cpu_s():
        clients = resource.getrusage(resource.RUSAGE_CHILDREN)
        return clients.ru_utime + clients.ru_stime + mount.cpu_s()

    before, start = cpu_s(), time.monotonic()
    output = run(command, 600, **more).stdout
    return output, time.monotonic() - start, cpu_s() - before


def load(mount, *words):
    """(the number that the load generator prints, processor time in seconds)."""
    output, _, cpu_s = measured(mount, [compiled("load.c"), *words])
    return float(output or "nan"), cpu_s
