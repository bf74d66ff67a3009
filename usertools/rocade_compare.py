#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measures Rocade beside TCP, UCX over TCP and rxe, in rounds that take turns, and writes medians
as a table (Markdown, CSV) and as plots (SVG, by gnuplot). rocade-compare.sh sets everything up."""
import argparse
import contextlib
import ipaddress
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAME = f'rcdcmp{os.getpid()}'  # of what the machine has but once: two may compare at a time
SPACES = NAME + 'a', NAME + 'b'
RXE_SPACE = NAME + 'rxe'
SETTLE = 0.4   # seconds that a server gets to listen
LIMIT = 60     # seconds that a measurement may take
CONGESTION = 'reno'  # control, of TCP
ADDRESSES = {'rcd': ('10.98.1.1', '10.98.1.2'), 'tcp': ('10.98.2.1', '10.98.2.2'),
             'udp': ('10.98.3.1', '10.98.3.2')}


class NotHere(Exception):
    """This cannot be measured on this machine; the text says why."""


def sh(*command, check=True, **more):
    return subprocess.run(command, check=check, capture_output=True, text=True, timeout=LIMIT,
                          **more).stdout


def busy_seconds():
    """CPU time that the whole machine has spent not idle, interrupts included."""
    words = pathlib.Path('/proc/stat').read_text(encoding='ascii').split('\n', 1)[0].split()[1:9]
    user, nice, system, _idle, _wait, irq, softirq, _steal = map(int, words)
    return (user + nice + system + irq + softirq) / os.sysconf('SC_CLK_TCK')


def last_figures(text):
    """The numbers of the last line of perftest's table."""
    lines = re.findall(r'^ *\d+ +\d+ +[\d. \t]+$', text, re.M)
    if not lines:
        raise RuntimeError(f'no figures in: {text[-400:]}')
    return [float(word) for word in lines[-1].split()]


class Pair:
    """A server and a client, each with words to put before and an environment."""

    def __init__(self, before=((), ()), envs=(None, None)):
        self.before, self.envs = before, envs

    def run(self, server, client):
        """What the client says, and the CPU time of the machine while both ran."""
        with subprocess.Popen([*self.before[0], *server], env=self.envs[0],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            try:
                time.sleep(SETTLE)
                busy, begin = busy_seconds(), time.monotonic()
                done = subprocess.run([*self.before[1], *client], env=self.envs[1], check=False,
                                      capture_output=True, text=True, timeout=LIMIT)
                cores = (busy_seconds() - busy) / (time.monotonic() - begin)
            finally:
                first.terminate()
        if done.returncode:
            raise RuntimeError(f'{client}: {done.stderr[-300:]}{done.stdout[-300:]}')
        return done.stdout, cores


class Perftest:
    """ib_send_bw and ib_send_lat over one pair of devices."""

    def __init__(self, name, pair, devices, host, seconds, options=('-x', '1')):
        self.name, self.pair, self.devices, self.host = name, pair, devices, host
        self.options = ['-F', *options]
        self.seconds = seconds

    def _run(self, program, words):
        one, two = ([program, '-d', device, *self.options, *words] for device in self.devices)
        out, cores = self.pair.run(one, [*two, self.host])
        return last_figures(out), cores

    def bandwidth(self, size):
        figures, cores = self._run('ib_send_bw', ['-s', str(size), '-D', str(self.seconds)])
        return figures[3] * 2**20 / 1e6, cores

    def latency(self, size):
        # Typical, as perftest calls it: the median.
        figures, cores = self._run('ib_send_lat', ['-s', str(size), '-n', '20000'])
        return figures[4], cores


class Iperf3:
    """One stream of TCP."""
    name = 'TCP over veth, iperf3'

    def __init__(self, pair, host, seconds):
        self.pair, self.host, self.seconds = pair, host, seconds

    def bandwidth(self, size):
        out, cores = self.pair.run(['iperf3', '-s', '-1'], ['iperf3', '-c', self.host, '-f', 'm',
                                   '-t', str(self.seconds), '-l', str(size)])
        return float(re.search(r'([\d.]+) Mbits/sec.*receiver', out).group(1)) / 8, cores


class Qperf:
    """TCP by qperf; its server stays until it is told."""
    name = 'TCP over veth, qperf'

    def __init__(self, pair, host, seconds):
        self.pair, self.host, self.seconds = pair, host, seconds

    def _run(self, test, size):
        return self.pair.run(['qperf'], ['qperf', self.host, '-uu', '-t', str(self.seconds), '-m',
                                         str(size), test])

    def bandwidth(self, size):
        out, cores = self._run('tcp_bw', size)
        return float(re.search(r'bw += +([\d.e+]+)', out).group(1)) / 1e6, cores

    def latency(self, size):
        out, cores = self._run('tcp_lat', size)
        return float(re.search(r'latency += +([\d.]+)', out).group(1)) / 1e3, cores


class Ucx:
    """UCX with its TCP transport."""
    name = 'UCX over TCP over veth'

    def __init__(self, pair, host, seconds):
        self.pair, self.host, self.seconds = pair, host, seconds

    def _run(self, test, size, count):
        out, cores = self.pair.run(['ucx_perftest'], ['ucx_perftest', self.host, '-t', test, '-s',
                                   str(size), '-n', str(count), '-w', '100', '-f'])
        return [float(word) for word in out.strip().split('\n')[-1].split()[1:]], cores

    def bandwidth(self, size):
        # About a second's worth: 1.5 GB/s, or a million messages.
        count = int(max(500, min(400000, 1.5e9 / size)) * self.seconds)
        figures, cores = self._run('tag_bw', size, count)
        return figures[-3] * 2**20 / 1e6, cores

    def latency(self, size):
        figures, cores = self._run('tag_lat', size, int(30000 * self.seconds))
        return figures[2], cores


class EmulatedRxe:
    """rxe in a virtual machine without hardware support: loopback within the guest."""
    name = 'rxe, emulated CPU (not comparable)'
    sizes = {64, 65536}

    def __init__(self, kit):
        self.kit = pathlib.Path(kit)

    def _run(self, program, words):
        line = (f'{program} -d rxe0 -x 1 -F {words} >/dev/null 2>&1 & sleep 1; '
                f'{program} -d rxe0 -x 1 -F {words} 10.77.0.1; wait')
        busy, begin = busy_seconds(), time.monotonic()
        out = sh(str(self.kit / 'peer-run'), '-N', RXE_SPACE, '-n', '1', '-t', '40', line,
                 check=False)
        return last_figures(out), (busy_seconds() - busy) / (time.monotonic() - begin)

    def bandwidth(self, size):
        figures, cores = self._run('ib_send_bw', f'-s {size} -D 2')
        return figures[3] * 2**20 / 1e6, cores

    def latency(self, size):
        figures, cores = self._run('ib_send_lat', f'-s {size} -n 1000')
        return figures[4], cores


def engine(stack, build, work, name, cpus, words, before=()):
    """Start an engine. Returns its socket and process."""
    sock = work / f'{name}.sock'
    log = stack.enter_context(open(work / f'{name}.log', 'w', encoding='utf-8'))
    command = [*before, str(build / 'app/rocaded/rocaded'), '--file-prefix', f'{NAME}{name}',
               '--lcores', cpus, '--no-telemetry', '--', '--socket', str(sock), *words]
    process = stack.enter_context(subprocess.Popen(command, stdout=log, stderr=log))
    stack.callback(end, process)
    limit = time.monotonic() + 20
    while not sock.exists():
        if process.poll() is not None or time.monotonic() > limit:
            raise NotHere(f'no engine: {(work / f"{name}.log").read_text()[-300:]}')
        time.sleep(0.1)
    return sock, process


def end(process):
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGCONT)
        process.terminate()
    process.wait(10)


def environment(build, sock):
    return {**os.environ, 'ROCADE_SOCKET': str(sock), 'LD_LIBRARY_PATH': str(build / 'lib')}


def make_veth(stack, mtu):
    """Two namespaces, with pairs of veth for Rocade and one for TCP."""
    for space in SPACES:
        sh('ip', 'netns', 'del', space, check=False)
        sh('ip', 'netns', 'add', space)
        stack.callback(sh, 'ip', 'netns', 'del', space, check=False)
        sh('ip', '-n', space, 'link', 'set', 'lo', 'up')
    for kind, addresses in ADDRESSES.items():
        ends = f'{kind}0', f'{kind}1'
        sh('ip', 'link', 'add', ends[0], 'netns', SPACES[0], 'type', 'veth', 'peer', 'name',
           ends[1], 'netns', SPACES[1])
        for space, dev, address in zip(SPACES, ends, addresses):
            sh('ip', '-n', space, 'addr', 'add', f'{address}/24', 'dev', dev)
            sh('ip', '-n', space, 'link', 'set', dev, 'mtu', str(mtu), 'up')
            # TCP is to be at its best, whatever the machine's default: bbr, which paces by timers,
            # had a quarter of what this one has on a veth. Every kernel has it.
            network = str(ipaddress.ip_interface(f'{address}/24').network)
            sh('ip', '-n', space, 'route', 'replace', network, 'dev', dev, 'proto', 'kernel',
               'scope', 'link', 'src', address, 'congctl', CONGESTION)


def inside(space):
    return ('ip', 'netns', 'exec', space)


class Bench:
    """All that is measured here."""

    def __init__(self, args, stack, work):
        self.args, self.stack, self.work = args, stack, work
        self.systems, self.notes, self.engines = [], [], []

    def add(self, make):
        try:
            self.systems.append(make())
        except (NotHere, subprocess.SubprocessError, OSError) as why:
            self.notes.append(f'{make.__name__[5:]}: not measured: {why}')
            print(f'rocade-compare: {self.notes[-1]}', file=sys.stderr)

    def cpus(self):
        return sorted(os.sched_getaffinity(0))

    def make_wire(self):
        cpus = self.cpus()
        sock, process = engine(self.stack, self.args.build, self.work, 'wire',
                               f'0@({cpus[0]}-{cpus[-1]}),1@{cpus[-1]}',
                               ['--embedded-wire', *self.args.keys])
        env = environment(self.args.build, sock)
        made = Perftest('Rocade, embedded wire', Pair(envs=(env, env)), ('roce0', 'roce1'),
                        '127.0.0.1', self.args.seconds)
        self.engines.append((made, [process.pid]))
        return made

    def make_veth(self):
        return self.netdevs('Rocade, veth', 'rcd', 'packet')

    def make_sockets(self):
        """By the kernel's UDP sockets, on a pair of their own: they hold the port of RoCE."""
        return self.netdevs('Rocade, UDP sockets, veth', 'udp', 'udp')

    def netdevs(self, name, prefix, mode):
        """Two engines, each on an end of a veth pair."""
        cpus = self.cpus()
        envs, processes = [], []
        for i, space in enumerate(SPACES):
            sock, process = engine(self.stack, self.args.build, self.work, f'{prefix}{i}',
                                   f'0@({cpus[0]}-{cpus[-1]}),1@{cpus[-1 - i % len(cpus)]}',
                                   self.args.keys,
                                   inside(space))
            sh(sys.executable, str(ROOT / 'usertools/rocade'), f'--socket={sock}', 'link', 'add',
               'roce0', 'type', 'netdev', f'{prefix}{i}', 'mode', mode)
            envs.append(environment(self.args.build, sock))
            processes.append(process.pid)
        made = Perftest(name, Pair(tuple(map(inside, SPACES)), envs), ('roce0', 'roce0'),
                        ADDRESSES[prefix][0], self.args.seconds)
        self.engines.append((made, processes))
        return made

    def tcp_pair(self, **more):
        env = {**os.environ, **more}
        return Pair(tuple(map(inside, SPACES)), (env, env)), ADDRESSES['tcp'][0]

    def make_iperf3(self):
        return Iperf3(*self.tcp_pair(), self.args.seconds)

    def make_qperf(self):
        return Qperf(*self.tcp_pair(), self.args.seconds)

    def make_ucx(self):
        if shutil.which('ucx_perftest') is None:
            raise NotHere('no ucx_perftest')
        return Ucx(*self.tcp_pair(UCX_TLS='tcp,self'), self.args.seconds)

    def make_rxe(self):
        """The machine's own rxe over the veth of TCP, else the kit's."""
        if subprocess.run(['modprobe', 'rdma_rxe'], check=False, capture_output=True).returncode:
            if not self.args.rxe_peer:
                raise NotHere('this kernel has no rdma_rxe, and no --rxe-peer was given')
            kit = EmulatedRxe(self.args.rxe_peer)
            for image in ('build-image.sh', 'start-peer'):
                words = ['-N', RXE_SPACE, '-n', '1'] if image == 'start-peer' else []
                subprocess.run([str(kit.kit / image), *words], check=True, capture_output=True,
                               timeout=900)
            self.stack.callback(sh, 'ip', 'netns', 'del', RXE_SPACE, check=False)
            self.stack.callback(sh, str(kit.kit / 'stop-peer'), '-N', RXE_SPACE, '-n', '1',
                                check=False)
            self.engines.append((kit, pids := [int(pid) for pid in sh('ip', 'netns', 'pids',
                                                                      RXE_SPACE).split()]))
            self.stack.callback(lambda: [os.kill(pid, signal.SIGCONT) for pid in pids])
            return kit
        sh('rdma', 'system', 'set', 'netns', 'exclusive', check=False)
        for i, space in enumerate(SPACES):
            sh(*inside(space), 'rdma', 'link', 'add', f'rxe{i}', 'type', 'rxe', 'netdev',
               f'tcp{i}')
        return Perftest('rxe, veth', self.tcp_pair()[0], ('rxe0', 'rxe1'), ADDRESSES['tcp'][0],
                        self.args.seconds)

    def only(self, system):
        """Engines and machines that are not measured stand still: they take cores from others."""
        for owner, processes in self.engines:
            for process in processes:
                os.kill(process, signal.SIGCONT if owner is system else signal.SIGSTOP)

    def run(self):
        """All sizes of all systems, round by round: {(kind, name, size): [(value, cores)]}."""
        results = {}
        for number in range(self.args.rounds):
            for kind, sizes in (('bandwidth', self.args.bw_sizes), ('latency',
                                                                    self.args.lat_sizes)):
                for size in sizes:
                    for system in self.systems:
                        measure = getattr(system, kind, None)
                        if measure is None or size not in getattr(system, 'sizes', {size}):
                            continue
                        self.only(system)
                        try:
                            figures = measure(size)
                        except (RuntimeError, subprocess.TimeoutExpired, AttributeError,
                                ValueError, IndexError) as why:
                            print(f'rocade-compare: {system.name}, {kind} {size}: {why}',
                                  file=sys.stderr)
                            continue
                        results.setdefault((kind, system.name, size), []).append(figures)
            print(f'rocade-compare: round {number + 1} of {self.args.rounds} done', flush=True)
        return results


def describe():
    cpu = re.search(r'model name\s*: (.*)', pathlib.Path('/proc/cpuinfo').read_text())
    dpdk = sh('pkg-config', '--modversion', 'libdpdk', check=False).strip()
    commit = sh('git', '-C', str(ROOT), 'rev-parse', '--short', 'HEAD', check=False).strip()
    huge = re.search(r'HugePages_Total: +(\d+)', pathlib.Path('/proc/meminfo').read_text())
    return (f'{time.strftime("%Y-%m-%d")}; {os.cpu_count()} cores, '
            f'{cpu.group(1) if cpu else platform.machine()}; Linux {platform.release()}; '
            f'DPDK {dpdk}; {huge.group(1) if huge else 0} hugepages; TCP by {CONGESTION}; '
            f'commit {commit or "?"}')


def middle(figures):
    return (statistics.median(value for value, _ in figures),
            statistics.median(cores for _, cores in figures))


def table(results, systems, kind, sizes, unit):
    lines = [f'| {unit} | ' + ' | '.join(system.name for system in systems) + ' |',
             '|---' * (len(systems) + 1) + '|']
    for size in sizes:
        cells = []
        for system in systems:
            figures = results.get((kind, system.name, size))
            value, cores = middle(figures) if figures else (None, None)
            cells.append(f'{value:.4g} ({cores:.1f})' if figures else '')
        lines.append(f'| {size} B | ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def plot(folder, results, systems, kind, sizes, unit):
    shown = [system for system in systems
             if any((kind, system.name, size) in results for size in sizes)
             and 'not comparable' not in system.name]
    data = folder / f'{kind}.dat'
    with open(data, 'w', encoding='utf-8') as out:
        for system in shown:
            out.write(f'"{system.name}"\n')
            for size in sizes:
                figures = results.get((kind, system.name, size))
                if figures:
                    out.write(f'{size} {middle(figures)[0]:.6g}\n')
            out.write('\n\n')
    script = f'''set terminal svg size 800,480 background rgb "white"
set output "{folder / kind}.svg"
set logscale xy
set grid
set key outside bottom center horizontal
set xlabel "message size, bytes"
set ylabel "{unit}"
plot for [i=0:{len(shown) - 1}] "{data}" index i using 1:2 with linespoints lw 2 \\
    title columnheader(1)
'''
    if shown:
        subprocess.run(['gnuplot'], input=script, text=True, check=True, timeout=LIMIT)


def write(folder, bench, results):
    args = bench.args
    bandwidth = table(results, bench.systems, 'bandwidth', args.bw_sizes, 'MB/s (cores busy)')
    latency = table(results, bench.systems, 'latency', args.lat_sizes, 'us (cores busy)')
    text = (f'{describe()}; medians of {args.rounds} rounds; command: '
            f'`usertools/rocade-compare.sh {" ".join(args.words)}`\n\n'
            f'Bandwidth, one direction, one connection; in brackets how many cores of the machine '
            f'were busy:\n\n{bandwidth}\n\nLatency, one way:\n\n{latency}\n')
    text += ''.join(f'\n{note}\n' for note in bench.notes)
    (folder / 'compare.md').write_text(text, encoding='utf-8')
    with open(folder / 'compare.csv', 'w', encoding='utf-8') as out:
        out.write('kind,system,size,value,cores_busy\n')
        for (kind, name, size), figures in results.items():
            for value, cores in figures:
                out.write(f'{kind},"{name}",{size},{value:.6g},{cores:.3f}\n')
    plot(folder, results, bench.systems, 'bandwidth', args.bw_sizes, 'MB/s')
    plot(folder, results, bench.systems, 'latency', args.lat_sizes, 'us, one way')
    print(text)
    print(f'rocade-compare: written to {folder}')


def main():
    parser = argparse.ArgumentParser(prog='rocade-compare.sh', description=__doc__)
    parser.add_argument('folder', nargs='?', default='rocade-compare', type=pathlib.Path)
    parser.add_argument('--build', type=pathlib.Path, default=ROOT / 'build/release',
                        help=argparse.SUPPRESS)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=int, default=1, help='of each measurement of bandwidth')
    parser.add_argument('--mtu', type=int, default=9000, help='of the veth')
    parser.add_argument('--quick', action='store_true', help='few sizes')
    parser.add_argument('--rxe-peer', default=os.environ.get('ROCADE_RXE_PEER', ''),
                        help='folder of a kit that boots a kernel with rdma_rxe')
    parser.add_argument('-o', '--option', action='append', default=[], metavar='KEY=VALUE',
                        help='a key of [engine], for the engines that are measured')
    args = parser.parse_args()
    args.keys = [f'--option={key}' for key in args.option]
    args.words = sys.argv[3:] if sys.argv[1:2] == ['--build'] else sys.argv[1:]
    args.bw_sizes = [64, 65536] if args.quick else [64, 512, 4096, 16384, 65536, 262144, 1048576]
    args.lat_sizes = [64] if args.quick else [2, 64, 1024, 4096, 16384]
    if os.geteuid() != 0:
        sys.exit('rocade-compare: needs root, for network namespaces')
    args.folder.mkdir(parents=True, exist_ok=True)
    # No later run finds what this one leaves: whoever ends it has it tidy up.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    with contextlib.ExitStack() as stack:
        work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bench = Bench(args, stack, work)
        make_veth(stack, args.mtu)
        for make in (bench.make_wire, bench.make_veth, bench.make_sockets, bench.make_iperf3,
                     bench.make_qperf, bench.make_ucx, bench.make_rxe):
            bench.add(make)
        write(args.folder, bench, bench.run())


if __name__ == '__main__':
    main()
