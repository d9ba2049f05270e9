#!/usr/bin/env python3
"""Run a conversion on a terminal, and print its cost by phase: wall time, CPU time, anonymous memory.

    phases.py [--samples FILE] -- COMMAND...

A phase is named by the progress that the command shows: the text before the colon, without numbers. Every 10 ms,
/proc has the CPU time of the command and its anonymous memory, without those of the processes that it starts. FILE
gets a line for each sample: seconds, CPU seconds, megabytes, phase. The exit code is that of the command."""

import os
import pty
import re
import select
import sys
import time

INTERVAL = 0.01
TICKS = os.sysconf("SC_CLK_TCK")


def read_cost(process):
    """Returns the CPU seconds and the megabytes of a process; None after its end."""
    try:
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        with open(f"/proc/{process}/status") as file:
            memory = re.search(r"RssAnon:\s*(\d+)", file.read())
    except OSError:
        return None
    if memory is None:
        return None
    return (int(fields[11]) + int(fields[12])) / TICKS, int(memory.group(1)) * 1024 / 1e6


def phase_of(text):
    """Returns the phase that progress names last; None if it names none."""
    lines = [line for line in re.split(r"[\r\n]+", text) if re.match(r"[A-Z][a-z]+ ", line)]
    if not lines:
        return None
    name = re.sub(r"\s*\d[\d.,]*\s*", " ", lines[-1].split(":")[0])
    return name.strip()


def main():
    args = sys.argv[1:]
    samples = None
    if args and args[0] == "--samples":
        samples = open(args[1], "w")
        args = args[2:]
    if not args or args[0] != "--" or len(args) < 2:
        sys.exit(__doc__)
    process, terminal = pty.fork()
    if process == 0:
        os.execvp(args[1], args[1:])
    begin = time.monotonic()
    phase, pending = "start", ""
    phases = {}
    previous = (0.0, 0.0)
    while True:
        ready, _, _ = select.select([terminal], [], [], INTERVAL)
        if ready:
            try:
                data = os.read(terminal, 1 << 16)
            except OSError:
                data = b""
            if not data:
                break
            pending = (pending + data.decode(errors="replace"))[-4096:]
            phase = phase_of(pending) or phase
        cost = read_cost(process)
        if cost is None:
            continue
        now = time.monotonic() - begin
        wall, cpu, peak = phases.get(phase, (0.0, 0.0, 0.0))
        phases[phase] = (wall + now - previous[0], cpu + cost[0] - previous[1], max(peak, cost[1]))
        previous = (now, cost[0])
        if samples:
            samples.write(f"{now:.3f} {cost[0]:.2f} {cost[1]:.1f} {phase}\n")
    _, status = os.waitpid(process, 0)
    total = sum(cpu for _, cpu, _ in phases.values()) or 1
    print(f"{'phase':<32} {'wall s':>8} {'CPU s':>8} {'share':>6} {'peak MB':>8}")
    for name, (wall, cpu, peak) in phases.items():
        print(f"{name:<32} {wall:8.2f} {cpu:8.2f} {cpu / total:6.0%} {peak:8.1f}")
    walls = sum(wall for wall, _, _ in phases.values())
    peak = max((peak for _, _, peak in phases.values()), default=0)
    print(f"{'all':<32} {walls:8.2f} {total:8.2f} {1:6.0%} {peak:8.1f}")
    sys.exit(os.waitstatus_to_exitcode(status))


main()
