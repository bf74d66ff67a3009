# SPDX-License-Identifier: BSD-3-Clause
"""What scripts that measure in rounds share: namespaces on a veth, figures that are kept from one
round to the next, medians of them as a table. Standard library only."""
import contextlib
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROCADE = ROOT / 'usertools/rocade'
MAC = '02:00:00:00:00:0a'
CPUS = sorted(os.sched_getaffinity(0))
PATIENCE = 60   # seconds until something that was started is there; emulated processors take long


def sh(*words, **more):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **more)
    if done.returncode:
        raise RuntimeError(f'{" ".join(map(str, words))}: {done.stderr}{done.stdout}'.strip())
    return done.stdout


def wait_until(what, condition):
    limit = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > limit:
            raise RuntimeError(f'{what}: not within {PATIENCE} seconds')
        time.sleep(0.05)


def busy_seconds():
    """Processor time that the whole machine has spent not idle, interrupts included."""
    words = pathlib.Path('/proc/stat').read_text(encoding='ascii').split('\n', 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, softirq, _steal = map(int, words)
    return (user + nice + system + irq + softirq) / os.sysconf('SC_CLK_TCK')


def busy_cores(seconds=0.5):
    """How many others keep busy: what is measured then says less."""
    before, begin = busy_seconds(), time.monotonic()
    time.sleep(seconds)
    return (busy_seconds() - before) / (time.monotonic() - begin)


class Veth:
    """Two namespaces on a veth: va in a, vb in b."""

    def __init__(self, stack, mtu):
        self.a, self.b = (f'rcdperf{os.getpid()}{side}' for side in 'ab')
        for space in (self.a, self.b):
            sh('ip', 'netns', 'add', space)
            stack.callback(sh, 'ip', 'netns', 'del', space)
            sh('ip', '-n', space, 'link', 'set', 'lo', 'up')
        sh('ip', 'link', 'add', 'va', 'netns', self.a, 'address', MAC, 'type', 'veth', 'peer',
           'name', 'vb', 'netns', self.b)
        for space, dev in ((self.a, 'va'), (self.b, 'vb')):
            sh('ip', '-n', space, 'link', 'set', dev, 'mtu', mtu, 'up')
            # A veth leaves checksums and large frames to a NIC that it is not.
            self.inside(space, sys.executable, pathlib.Path(__file__).parent / 'whole.py', dev)

    def inside(self, space, *words):
        return sh('ip', 'netns', 'exec', space, *words)

    def begin(self, stack, space, log, *words, **more):
        """A program that runs until the stack's end."""
        process = subprocess.Popen(['ip', 'netns', 'exec', space, *map(str, words)],
                                   stdin=subprocess.PIPE, stdout=log, stderr=log, **more)
        stack.callback(end, process)
        return process

    def ping_us(self, space, address, count, pause):
        """The median of their round trips."""
        said = self.inside(space, 'ping', '-c', count, '-i', pause, '-W', '5', address)
        times = re.findall(r'time=([\d.]+) ms', said)
        return statistics.median(map(float, times)) * 1000


def end(process):
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Engine:
    """
    One with a lcore.

    @param at  which of the cores that is
    """

    def __init__(self, veth, stack, build, folder, space, *options, at=-1):
        self.socket = f'{folder}/{space}.sock'
        with open(f'{folder}/{space}.log', 'w', encoding='utf-8') as log:
            self.process = veth.begin(
                stack, space, log, build / 'app/rocaded/rocaded', '--file-prefix', space,
                '--lcores', f'0@({CPUS[0]}-{CPUS[-1]}),1@{CPUS[at]}', '--no-huge', '-m', '384',
                '--no-telemetry', '--', '--socket', self.socket, *options)

        def answers():
            if self.process.poll() is not None:
                raise RuntimeError(pathlib.Path(f'{folder}/{space}.log').read_text())
            return os.path.exists(self.socket) and not subprocess.run(
                [ROCADE, '--socket', self.socket, 'engine'], capture_output=True,
                check=False).returncode
        wait_until('the engine', answers)

    def admin(self, *words):
        return sh(ROCADE, '--socket', self.socket, *words)

    def ticks(self):
        """Processor time that it took, in hundredths of a second."""
        fields = pathlib.Path(f'/proc/{self.process.pid}/stat').read_text().rsplit(')', 1)[1]
        return sum(map(int, fields.split()[11:13]))


def kept(path, figures):
    """These figures, and those that earlier runs left in a file, which they are added to."""
    if path is None:
        return figures
    with open(path, 'a+', encoding='utf-8') as file:
        for entry in figures:
            file.write(json.dumps(entry) + '\n')
        file.seek(0)
        return [json.loads(line) for line in file]


def cell(values):
    def figure(value):
        return f'{value:.0f}' if value >= 100 else f'{value:.3g}'
    return f'{figure(statistics.median(values))} ({figure(min(values))} to ' \
        f'{figure(max(values))})' if values else ''


def table(figures, keys, first=None):
    """
    Medians with the least and the most, one line for each way.

    @param figures  [{'way': name, 'round': which, key: number}]
    @param keys     {key: head of its column}
    @param first    ratios to this way in the same round, and not the figures
    """
    base = {entry['round']: entry for entry in figures if entry['way'] == first}
    lines = ['| way | ' + ' | '.join(keys.values()) + ' |', '|---' * (len(keys) + 1) + '|']
    for way in dict.fromkeys(entry['way'] for entry in figures):
        mine = [entry for entry in figures if entry['way'] == way]
        cells = [cell([entry[key] / (base[entry['round']][key] if base else 1) for entry in mine
                       if key in entry and (not base or entry['round'] in base)])
                 for key in keys]
        lines.append(f'| {way} | ' + ' | '.join(cells) + ' |')
    others = [entry['others'] for entry in figures if 'others' in entry]
    return '\n'.join(lines) + f'\n\n{len({entry["round"] for entry in figures})} rounds; others ' \
        f'had {cell(others)} cores before each figure'
