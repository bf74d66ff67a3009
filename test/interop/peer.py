# SPDX-License-Identifier: BSD-3-Clause
"""A Linux kernel with rdma_rxe in a virtual machine, in a network namespace of ours, and an engine
on the free end of a veth pair beside it. The kit that boots the kernel lies beside the project
(../shared/rxe-peer), or where ROCADE_RXE_PEER says."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'test/harness'))
import tap  # noqa: E402

KIT = pathlib.Path(os.environ.get('ROCADE_RXE_PEER', ROOT.parent / 'shared/rxe-peer'))
IMAGES = pathlib.Path(os.environ.get('RXE_PEER_DIR', '/var/tmp/rxe-peer'))
GUEST = '10.77.0.1'    # of the guest: its rxe0 has it as GID 1
BRIDGE = '10.77.0.254'  # of our programs' own TCP connections
OURS = '10.77.0.100'   # of the engine
LIMIT = 120  # seconds that a command may take, by an emulated processor beside other tests
NOBODY = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all',
          '--bounding-set=-all']


class NoPeer(Exception):
    """There is no kernel to talk to here; the text says why."""


def sh(*command, limit=LIMIT, env=None, data=None):
    return subprocess.run(command, capture_output=True, timeout=limit, env=env, input=data,
                          check=False)


class Peer:
    """The kernel."""

    device = 'rxe0'

    def __init__(self, kernel, mtu, namespace, backend=None, limit=LIMIT):
        self.kernel, self.mtu, self.namespace, self.backend = kernel, mtu, namespace, backend
        self.limit = limit  # seconds that a command may take, if not told

    def check(self):
        if os.geteuid() != 0:
            raise NoPeer('needs root')
        if not (KIT / 'start-peer').exists():
            raise NoPeer(f'no kit to boot a kernel at {KIT}')
        if not (IMAGES / 'image' / self.kernel / 'vmlinux').exists():
            built = sh(str(KIT / 'build-image.sh'), self.kernel, limit=900)
            if built.returncode:
                raise NoPeer(f'no image of Linux {self.kernel}: {built.stderr.decode()[-300:]}')
        if shutil.which('qemu-system-x86_64') is None:
            raise NoPeer('no qemu-system-x86_64')

    def boot(self):
        words = ['-N', self.namespace, '-n', '1', '-k', self.kernel, '-M', str(self.mtu)]
        if self.backend:
            words += ['-b', self.backend]
        started = sh(str(KIT / 'start-peer'), *words, limit=180)
        if started.returncode:
            raise NoPeer(f'the peer does not start: {started.stderr.decode()[-300:]}')
        return started.stdout.decode().strip()

    def crashed(self):
        """What the kernel said when it ended, or '' while it lives."""
        run = IMAGES / 'run' / f'{self.namespace}-1'
        console = (run / 'console.log').read_text(encoding='utf-8', errors='replace')
        found = console.find('PANIC')
        if found < 0:
            found = console.find('Kernel panic')
        return console[found:found + 2000] if found >= 0 else ''

    def boot_again(self):
        sh(str(KIT / 'stop-peer'), '-N', self.namespace, '-n', '1')
        return self.boot()

    def end(self):
        if (KIT / 'stop-peer').exists():
            sh(str(KIT / 'stop-peer'), '-N', self.namespace, '-n', '1')
        sh('ip', 'netns', 'del', self.namespace)

    def command(self, text, limit=None):
        return [str(KIT / 'peer-run'), '-N', self.namespace, '-n', '1', '-t',
                str(limit or self.limit), text]

    def piped(self, text):
        """A command that takes our standard input."""
        words = self.command(text)
        return [words[0], '-i', *words[1:]]

    def listens(self, port):
        return self.run(f'ss -ltn | grep -q ":{port} "')[0] == 0

    def run(self, text, limit=None):
        done = sh(*self.command(text, limit), limit=(limit or self.limit) + 20)
        return done.returncode, done.stdout.decode() + done.stderr.decode()

    def must(self, text):
        status, out = self.run(text)
        tap.equal(status, 0, f'{text}: {out}')
        return out

    def put(self, path, to):
        """Copy a program of ours into the guest."""
        done = sh(*self.piped(f'cat > {to} && chmod 755 {to}'),
                  data=pathlib.Path(path).read_bytes())
        tap.equal(done.returncode, 0, done.stderr)

    def cm_ids(self):
        return json.loads(self.run('rdma -j resource show cm_id')[1] or '[]')

    def kill(self, program):
        self.run(f'pkill -9 -x {program} || killall -9 {program}')

    def counters(self):
        out = self.must('cd /sys/class/infiniband/rxe0/ports/1/hw_counters; '
                        'for f in *; do echo $f $(cat $f); done')
        return {name: int(val) for name, val in (line.split() for line in out.splitlines())}


class Engine:
    """The engine in the peer's namespace, which owns an address there."""

    device = 'roce0'

    def __init__(self, rocaded, library, namespace):
        self.rocaded, self.namespace = rocaded, namespace
        self.folder = tempfile.mkdtemp(prefix='rcdinterop')
        self.env = {**os.environ, 'ROCADE_SOCKET': f'{self.folder}/rocade.sock',
                    'LD_LIBRARY_PATH': str(pathlib.Path(library).parent)}
        self.process = None

    def start_by_sockets(self, impair=None):
        """As nobody, by the kernel's UDP sockets: the free end and its addresses are the kernel's.
        """
        self.inside('sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=1',
                    'net.ipv4.conf.all.rp_filter=0', 'net.ipv4.conf.dpdk0.rp_filter=0',
                    'net.ipv6.conf.dpdk0.accept_dad=0')
        # Runs are cut before they are seen here, as they are by a NIC that can't.
        self.inside('ip', 'link', 'set', 'dpdk0', 'gso_max_segs', '1')
        for address in (f'{OURS}/24', 'fd77::100/64'):
            self.inside('ip', 'addr', 'add', address, 'dev', 'dpdk0')
        # The bridge has the same subnets: by which of the two to the machine?
        self.inside('ip', 'route', 'add', f'{GUEST}/32', 'dev', 'dpdk0', 'src', OURS)
        self.inside('ip', '-6', 'route', 'add', 'fd77::1/128', 'dev', 'dpdk0', 'src', 'fd77::100')
        config = pathlib.Path(self.folder) / 'rocade.conf'
        config.write_text(f'[engine]\nsocket = {self.folder}/rocade.sock\n[device roce0]\n'
                          'type = udp\nnetdev = dpdk0\n' +
                          (f'impair = {impair}\n' if impair else ''))
        os.chmod(self.folder, 0o777)
        self.run('--', '--config', str(config), who=NOBODY)

    def inside(self, *words):
        done = sh('ip', 'netns', 'exec', self.namespace, *words)
        tap.equal(done.returncode, 0, f'{words}: {done.stderr.decode()}')

    def start(self, port, mtu, impair=None):
        config = pathlib.Path(self.folder) / 'rocade.conf'
        config.write_text(f'[engine]\nsocket = {self.folder}/rocade.sock\n[device roce0]\n'
                          f'type = port\ndevargs = {port}\nmtu = {mtu}\n'
                          f'address = {OURS}/24 fd77::100/64\n' +
                          (f'impair = {impair}\n' if impair else ''))
        # The netdev below has the engine's MAC address: it must not answer for it, nor send on
        # what it takes for a packet to be routed.
        sh('ip', 'netns', 'exec', self.namespace, 'sysctl', '-qw',
           'net.ipv6.conf.dpdk0.disable_ipv6=1', 'net.ipv4.ip_forward=0',
           'net.ipv6.conf.all.forwarding=0')
        self.run('--', '--config', str(config))

    def run(self, *words, who=()):
        """The program with the engine, and what follows EAL's options that all have."""
        bare = {key: val for key, val in self.env.items() if key != 'LD_LIBRARY_PATH'}
        with open(f'{self.folder}/log', 'a', encoding='utf-8') as log:
            self.process = subprocess.Popen(
                ['ip', 'netns', 'exec', self.namespace, *who, self.rocaded, '--file-prefix',
                 pathlib.Path(self.folder).name, '--no-huge', '-m', '512', '--no-telemetry',
                 *words],
                env=bare, stdout=log, stderr=log)
        deadline = time.monotonic() + tap.PATIENCE
        while self.rocade('engine').returncode:
            tap.true(self.process.poll() is None and time.monotonic() < deadline, self.log())
            time.sleep(0.05)

    def stop(self):
        if self.process is not None:
            self.process.terminate()
            self.process.wait(tap.PATIENCE)
        self.process = None

    def log(self):
        return pathlib.Path(f'{self.folder}/log').read_text(encoding='utf-8')

    def rocade(self, *words):
        return subprocess.run([ROOT / 'usertools/rocade', *words], capture_output=True, text=True,
                              env=self.env, timeout=LIMIT, check=False)

    def command(self, *words):
        return ['ip', 'netns', 'exec', self.namespace, 'timeout', str(LIMIT), *words]

    def cm_ids(self):
        return json.loads(self.rocade('-j', 'resource', 'show', 'cm_id').stdout)

    def kill(self, program):
        # In a namespace of ours there are no others.
        sh('ip', 'netns', 'exec', self.namespace, 'bash', '-c',
           f'for p in $(ip netns pids {self.namespace}); do '
           f'[ "$(cat /proc/$p/comm)" = {program} ] && kill -9 $p; done')

    def counters(self):
        done = self.rocade('-j', 'statistic', 'show', 'link', self.device)
        return json.loads(done.stdout)[0]['counters']

    def impair(self, args):
        done = self.rocade('link', 'set', self.device, 'impair', args)
        tap.equal(done.returncode, 0, done.stderr)


class Router(Engine):
    """examples/graph-router, whose engine is in a graph of DPDK's nodes and ours."""

    device = 'router0'

    def start(self, port, mtu, impair=None):
        sh('ip', 'netns', 'exec', self.namespace, 'sysctl', '-qw',
           'net.ipv6.conf.dpdk0.disable_ipv6=1', 'net.ipv4.ip_forward=0')
        self.run('-l', '0', '--no-pci', '--vdev', port, '--', '--socket',
                 f'{self.folder}/rocade.sock', '--address', f'0,{OURS}/24', '--address',
                 '0,fd77::100/64')
