# SPDX-License-Identifier: BSD-3-Clause
"""Guests of the kit nic-lab, whose NICs are the engine's, on one Ethernet with others.

                       namespace NAME                  namespaces NAMEa, NAMEb
    guest of rxe-peer [tap1]--[br77 10.77.0.254]--veth--[lan]-[tapn]  NIC of a guest, 0000:01:00.0
                                   10.56.0.1                 [tapk]  NIC of its kernel, 10.56.0.2

Commands in a guest go by its kernel's NIC (agent.py). The kit lies beside the project
(../shared/nic-lab), or where ROCADE_NIC_LAB says.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / 'test/harness'))
import leash  # noqa: E402
import tap  # noqa: E402

KIT = pathlib.Path(os.environ.get('ROCADE_NIC_LAB', ROOT.parent / 'shared/nic-lab'))
HOST = '10.77.0.254'    # of programs on the host
ADDRESSES = ('10.77.0.100', 'fd77::100'), ('10.77.0.1', 'fd77::1')
NIC = '0000:01:00.0'
LIMIT = 100             # seconds that a command may take, by an emulated processor
SECONDS = 3000          # that a guest lives at most
# Ours are for what is to have them: neither QEMU nor EAL's drivers.
ENV = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
# On a machine that others use too, an emulated timer comes too late for the kernel's test of it.
ENV['NIC_LAB_APPEND'] = 'no_timer_check'
# In the guest, before anything else. The kit loaded what it has of modules; this root has none of
# its kernel's.
SCRIPT = """
rm -f /sbin/modprobe && printf '#!/bin/sh\\n' >/sbin/modprobe && chmod +x /sbin/modprobe
kept=$(ip -o addr show to 10.56.0.2 | awk '{{print $2}}')
if [ {address} != 10.56.0.2 ]; then
	ip addr del 10.56.0.2/24 dev "$kept"
	ip addr add {address}/24 dev "$kept"
fi
# Both NICs are on one Ethernet: each answers for its own addresses.
sysctl -qw net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2
exec {python} {here}/agent.py serve {address}
"""

# A netdev of virtio's is a device further down.
KERNELS = f"""
basename $(readlink /sys/bus/pci/devices/{NIC}/driver)
for netdev in /sys/bus/pci/devices/{NIC}{{,/virtio*}}/net/*; do
	[ ! -e $netdev ] || {{ basename $netdev; cat $netdev/address $netdev/mtu; }}
done
"""


def sh(*words, wrong=AssertionError):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, env=ENV)
    if done.returncode:
        raise wrong(f'{" ".join(map(str, words))}: {done.stderr.strip()[-300:]}')
    return done.stdout


def need_kit(modules=''):
    """What boots a guest, whose kernel has these modules besides."""
    if not (KIT / 'run').exists():
        raise tap.Skip(f'no kit in {KIT}')
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    images = pathlib.Path(os.environ.get('NIC_LAB_DIR', '/var/tmp/nic-lab'))
    if modules:
        images /= modules.replace(' ', '+')
    ENV['NIC_LAB_DIR'] = str(images)
    images.mkdir(parents=True, exist_ok=True)
    # Another of these tests may be at it. What the kit needs it installs.
    with open(images / 'lock', 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (images / 'initrd.cpio').exists():
            build(modules)
    for program in ('qemu-system-x86_64', 'dpdk-devbind.py', 'ibv_rc_pingpong', 'driverctl'):
        if shutil.which(program) is None:
            raise tap.Skip(f'no {program}')


def build(modules):
    """By the kit, of which a list of modules is to be edited for more of them."""
    with tempfile.TemporaryDirectory(prefix='rcdlab') as folder:
        copy = pathlib.Path(folder) / 'kit'
        shutil.copytree(KIT, copy)
        script = (copy / 'build.sh').read_text()
        os.chmod(copy / 'build.sh', 0o755)
        (copy / 'build.sh').write_text(script.replace('\nMODULES="', f'\nMODULES="{modules} ', 1))
        sh(copy / 'build.sh', wrong=tap.Skip)


def stand_in(folder, number, model):
    """A PATH with a QEMU (qemu.py) whose NIC lies in a slot, and has the options it needs."""
    program = pathlib.Path(folder) / 'qemu-system-x86_64'
    options = ''.join(f',{option}=on' for option in options_of(model))
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {HERE}/qemu.py '
                       f'{shutil.which(program.name)} {folder} {number} "{options}" "$@"\n')
    program.chmod(0o755)
    return f'{folder}:{ENV["PATH"]}'


def options_of(model):
    """Of QEMU's device, to be on: one of virtio goes round the IOMMU without."""
    return ('iommu_platform',) if model == 'virtio-net-pci' else ()


def monitor(folder, command, **arguments):
    """A command of QEMU's."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(30)
        connection.connect(f'{folder}/monitor')
        with connection.makefile('rw', encoding='utf-8') as lines:
            lines.readline()
            for execute, more in (('qmp_capabilities', {}), (command, arguments)):
                lines.write(json.dumps({'execute': execute, 'arguments': more}) + '\n')
                lines.flush()
                answer = {}
                while not answer.keys() & {'return', 'error'}:
                    answer = json.loads(lines.readline())
                tap.true('error' not in answer, f'{command}: {answer}')


class Net:
    """The Ethernet: a bridge in a namespace, with an address of the host's."""

    def __init__(self, name):
        self.name = name
        self.made = []

    def ip(self, words, space=None):
        return sh('ip', '-n', space or self.name, *words.split())

    def space(self, name, bridge):
        sh('ip', 'netns', 'add', name)
        self.made.append(name)
        self.ip('link set lo up', name)
        # A TAP of a guest's gets an address from the kit, which is the host's: that does not
        # answer for it.
        for setting in ('ipv6.conf.default.accept_dad=0', 'ipv4.conf.all.arp_ignore=8',
                        'ipv4.ip_forward=0', 'ipv6.conf.all.forwarding=0'):
            sh('ip', 'netns', 'exec', name, 'sysctl', '-qw', f'net.{setting}')
        self.ip(f'link add {bridge} type bridge stp_state 0 forward_delay 0 mcast_snooping 0', name)
        self.ip(f'link set {bridge} up', name)

    def start(self, mtu):
        self.space(self.name, 'br77')
        sh('ip', 'netns', 'exec', self.name, 'sysctl', '-qw', 'net.ipv4.conf.all.arp_ignore=0')
        # The kit rxe-peer has one; it has to fit before its TAP comes.
        self.ip(f'link set br77 mtu {mtu}')
        for address in (f'{HOST}/24', 'fd77::fe/64 nodad', '10.56.0.1/24'):
            self.ip(f'addr add dev br77 {address}')

    def branch(self, letter):
        """The TAPs of a guest, in a namespace of their own as they have the same names."""
        name = self.name + letter
        self.space(name, 'lan')
        self.ip(f'link add v{letter} mtu 9000 type veth peer name trunk mtu 9000 netns {name}')
        self.ip(f'link set v{letter} master br77 up')
        for tapn in ('tapn', 'tapk'):
            self.ip(f'tuntap add {tapn} mode tap', name)
        self.ip('link set tapn mtu 9000', name)
        for port in ('trunk', 'tapn', 'tapk'):
            self.ip(f'link set {port} master lan up', name)
        return name

    def run(self, *words, limit=LIMIT, **env):
        return subprocess.run(['ip', 'netns', 'exec', self.name, *map(str, words)],
                              capture_output=True, text=True, errors='replace', timeout=limit,
                              check=False, env={**ENV, **env})

    def stop(self):
        for name in self.made:
            subprocess.run(['ip', 'netns', 'del', name], check=False, capture_output=True)


class Guest:
    """One that boots, with an agent."""

    def __init__(self, net, letter, model):
        self.net, self.letter, self.model = net, letter, model
        self.number = 1 + 'ab'.index(letter)
        self.address = f'10.56.0.{1 + self.number}'
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix='rcdlab'))
        self.console = self.folder / 'console'
        self.process = None

    def boot(self):
        script = self.folder / 'script.sh'
        script.write_text(SCRIPT.format(address=self.address, python=sys.executable, here=HERE))
        space = self.net.branch(self.letter)
        with open(self.console, 'w', encoding='utf-8') as out:
            self.process = subprocess.Popen(
                [KIT / 'run', script, f'{self.model},tapn'], stdout=out, stderr=out,
                env={**ENV, 'PATH': stand_in(self.folder, self.number, self.model),
                     'NIC_LAB_NS': space, 'NIC_LAB_LIMIT': str(SECONDS)})
        pid = self.folder / 'pid'
        tap.wait_until('QEMU', lambda: pid.exists() and pid.read_text())
        leash.leash(int(pid.read_text()))

    def wait(self):
        """Until it answers."""
        tap.wait_until('a guest', lambda: self.process.poll() is not None or
                       self.run('true', 10).returncode == 0, 300)
        tap.true(self.process.poll() is None, self.said())

    def said(self):
        return self.console.read_text(errors='replace')[-3000:]

    def command(self, text, limit=LIMIT):
        return ['ip', 'netns', 'exec', self.net.name, sys.executable, str(HERE / 'agent.py'),
                'call', self.address, str(limit), text]

    def run(self, text, limit=LIMIT):
        return subprocess.run(self.command(text, limit), capture_output=True, text=True,
                              errors='replace', timeout=limit + 20, check=False, env=ENV)

    def must(self, text, limit=LIMIT):
        done = self.run(text, limit)
        tap.equal(done.returncode, 0, f'{text}: {done.stdout}{done.stderr}')
        return done.stdout

    def monitor(self, command, **arguments):
        monitor(self.folder, command, **arguments)

    def stop(self):
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(OSError, ValueError, AssertionError):
                self.monitor('quit')
            try:
                self.process.wait(tap.PATIENCE)
            except subprocess.TimeoutExpired:
                os.kill(int((self.folder / 'pid').read_text()), 9)
                self.process.wait(tap.PATIENCE)
        shutil.rmtree(self.folder, ignore_errors=True)


class Node:
    """A guest with an engine on its NIC. Has what peer.py's Engine and Peer have, so that either
    side's programs may run here."""

    device = 'roce0'

    def __init__(self, net, letter, model, rocaded, library):
        self.guest = Guest(net, letter, model)
        self.addresses = ADDRESSES['ab'.index(letter)]
        self.rocaded, self.library = os.path.abspath(rocaded), os.path.abspath(library)
        self.env = None
        self.before = ''

    def run(self, text, limit=LIMIT):
        done = self.guest.run(f'{self.variables()} {text}', limit)
        return done.returncode, done.stdout + done.stderr

    def must(self, text, limit=LIMIT):
        return self.guest.must(text, limit)

    def crashed(self):
        """As peer.py's: a kernel that is gone. Not looked for here."""
        return ''

    def start(self, mtu):
        """From a NIC of the kernel's to a device."""
        self.guest.wait()
        self.guest.must('mkdir -p /run/lab')
        self.before = self.kernels()
        self.rocade_must('node', 'prepare')
        self.rocade_must('node', 'bind', NIC)
        # One that polls would take a core from the emulated processors; the embedded wire that
        # "rocade up" makes has a device of our name.
        self.rocade_must('up', '-c', '/dev/null', '-o', 'idle=sleep')
        self.link(mtu=mtu)

    def kernels(self):
        """What the kernel has of the NIC: driver, netdev, MAC and MTU, a line each."""
        return self.guest.run(KERNELS).stdout

    def link(self, *more, mtu=1500):
        self.rocade_must('link', 'add', 'roce0', 'type', 'port', NIC, 'kernel', 'r0k', *more)
        four, six = self.addresses
        self.guest.must(f'ip link set r0k mtu {mtu} && ip addr add {four}/24 dev r0k && '
                        f'ip addr add {six}/64 dev r0k nodad')
        tap.wait_until('ACTIVE', lambda: 'state ACTIVE' in self.rocade('link').stdout)

    def unlink(self):
        self.rocade_must('link', 'del', 'roce0')

    def variables(self, library=True):
        said = f'ROCADE_ROCADED={self.rocaded} ROCADE_SOCKET=/run/lab/rocade.sock'
        return f'{said} LD_LIBRARY_PATH={pathlib.Path(self.library).parent if library else ""}'

    def rocade(self, *words):
        return self.guest.run(f'{self.variables(False)} {ROOT}/usertools/rocade --log '
                              f'/run/lab/rocaded.log {" ".join(words)}')

    def rocade_must(self, *words):
        done = self.rocade(*words)
        tap.equal(done.returncode, 0, f'rocade {" ".join(words)}: {done.stdout}{done.stderr}'
                  f'{self.log()}')
        return done.stdout

    def log(self):
        return self.guest.run('tail -c 3000 /run/lab/rocaded.log').stdout

    def command(self, *words, limit=LIMIT):
        return self.guest.command(f'{self.variables()} {" ".join(words)}', limit)

    def cm_ids(self):
        return json.loads(self.rocade_must('-j', 'resource', 'show', 'cm_id'))

    def kill(self, program):
        self.guest.run(f'killall -9 {program}')

    def counters(self):
        return json.loads(self.rocade_must('-j', 'statistic', 'show', 'link',
                                           'roce0'))[0]['counters']

    def stop(self):
        self.guest.stop()
