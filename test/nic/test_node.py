#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: rocade node does what a NIC of DPDK's takes, once, and nothing that cuts a machine off;
rocade doctor looks at the same.

Method: machines that are folders, with what sysfs would say, and --dry-run; ip, driverctl and what
else is to be found are programs of the test's.

    test_node.py
"""
import json
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROCADE = pathlib.Path(__file__).resolve().parents[2] / 'usertools/rocade'
PAGES = 'sys/devices/system/node/node{}/hugepages/hugepages-2048kB'
NIC, OTHER, MLX = '0000:03:00.0', '0000:03:00.1', '0000:04:00.0'


class Machine:
    """One with three NICs, an IOMMU and nothing prepared."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / 'root'
        self.programs = pathlib.Path(folder) / 'bin'
        self.programs.mkdir()
        os.symlink(sys.executable, self.programs / 'python3')
        for number, (nic, driver, netdev, node) in enumerate((
                (NIC, 'ixgbe', 'net/eth1', 0), (OTHER, 'virtio-pci', 'virtio3/net/eth2', 1),
                (MLX, 'mlx5_core', 'net/eth3', 1))):
            self.device(nic, '0x020000', driver, number, netdev, node)
        self.put(f'sys/bus/pci/devices/{MLX}/vendor', '0x15b3')
        self.put(f'sys/bus/pci/devices/{NIC}/vendor', '0x8086')
        for node in (0, 1):
            self.put(PAGES.format(node) + '/nr_hugepages', '10')
            self.put(PAGES.format(node) + '/free_hugepages', '4')
        self.put('proc/cpuinfo', 'vendor_id : GenuineIntel')
        self.put('proc/mounts', 'none / ext4 rw 0 0')
        self.routes('eth9')
        self.program('driverctl', '')

    def put(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + '\n')

    def link(self, path, to):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.symlink_to(to)

    def device(self, address, kind, driver, group, netdev=None, node=0):
        folder = f'sys/bus/pci/devices/{address}'
        self.put(f'{folder}/class', kind)
        self.put(f'{folder}/numa_node', str(node))
        self.link(f'{folder}/driver', f'../../drivers/{driver}')
        self.link(f'{folder}/iommu_group', f'../../../kernel/iommu_groups/{group}')
        self.link(f'sys/kernel/iommu_groups/{group}/devices/{address}', self.root / folder)
        if netdev:
            (self.root / folder / netdev).mkdir(parents=True)
            self.put(f'sys/class/net/{os.path.basename(netdev)}/flags', '0x1002')

    def process(self, number, program, comm='rocaded', owner=0):
        self.put(f'proc/{number}/comm', comm)
        self.put(f'proc/{number}/status', f'Name:\t{comm}\nUid:\t{owner}\t0\t0\t0')
        self.link(f'proc/{number}/exe', f'/usr/sbin/{program}')

    def program(self, name, body):
        path = self.programs / name
        path.write_text(f'#!/bin/sh\n{body}\n')
        path.chmod(0o755)

    def routes(self, netdev):
        said = json.dumps([{'dst': 'default', 'dev': netdev}])
        self.program('ip', f"echo '{said}'")

    def rocade(self, *words):
        """(what it said, what it complained of, status)"""
        done = subprocess.run([sys.executable, ROCADE, *words, '--root', str(self.root)],
                              capture_output=True, text=True, check=False,
                              env={'PATH': str(self.programs)})
        tap.true('Traceback' not in done.stderr, done.stderr)
        return done.stdout.replace(str(self.root), ''), done.stderr, done.returncode

    def node(self, *words):
        return self.rocade('node', *words, '--dry-run')

    def doctor(self, check, state, what, remedy=''):
        said, complaint, status = self.rocade('-j', 'doctor')
        found = {entry['check']: entry for entry in json.loads(said)}
        tap.equal(complaint, '', 'complaints')
        tap.equal(sorted(found), ['iommu', 'nics', 'node'], 'of a machine in a folder')
        tap.equal(status, int('fail' in [entry['state'] for entry in found.values()]), 'status')
        entry = found[check]
        tap.equal(entry['state'], state, entry)
        tap.true(what in entry['what'] and entry['remedy'].startswith(remedy) and
                 bool(remedy) == bool(entry['remedy']), entry)

    def as_prepared(self):
        """All that "prepare" would see to is there, and comes again."""
        for node in (0, 1):
            self.put(PAGES.format(node) + '/free_hugepages', '256')
            self.put(f'etc/tmpfiles.d/rocade-node{node}.conf',
                     f'w /{PAGES.format(node)}/nr_hugepages - - - - 10')
        self.put('proc/mounts', 'none /dev/hugepages hugetlbfs rw 0 0')
        self.put('sys/module/vfio_pci/initstate', 'live')
        self.put('etc/modules-load.d/rocade-node.conf', 'vfio-pci')
        (self.root / 'sys/bus/pci/drivers/vfio-pci').mkdir(parents=True)

    def does(self, *words):
        said, complaint, status = self.node(*words)
        tap.equal((complaint, status), ('', 0), words)
        return said.splitlines()

    def refuses(self, what, *words):
        said, complaint, status = self.node(*words)
        tap.true(status == 1 and what in complaint, f'{words}: {said}{complaint}')
        tap.true('driverctl' not in said, said)


def echoed(said):
    """(path, text) of a file, as a shell would write it."""
    echo, text, to, path = shlex.split(said)
    tap.equal((echo, to), ('echo', '>'), said)
    return path.lstrip('/'), text


def on_machine(test):
    def run():
        with tempfile.TemporaryDirectory() as folder:
            test(Machine(folder))
    run.__name__ = test.__name__
    return tap.test(run)


@on_machine
def shows_nics(machine):
    machine.put(f'etc/driverctl.d/pci-{NIC}', 'vfio-pci')
    lines = machine.does('show')
    tap.equal(len(lines), 3, lines)
    tap.equal(lines[0], f'{NIC} driver ixgbe netdev eth1 numa_node 0 iommu_group 0 next_boot '
              'vfio-pci', 'line')
    # By address, short address, netdev; a netdev of virtio is a device further down.
    for name, nic in ((NIC, NIC), ('03:00.1', OTHER), ('eth2', OTHER)):
        tap.true(machine.does('show', name)[0].startswith(f'{nic} '), name)
    machine.refuses('no NIC on a PCI bus; there are 0000:03:00.0', 'show', '0000:09:00.0')
    machine.refuses('no NIC', 'bind', '../../etc')


@on_machine
def prepares(machine):
    pages = '/' + PAGES.format(1) + '/nr_hugepages'
    tap.equal(machine.does('prepare', 'eth2'), [
        f'echo 262 > {pages}',
        f"echo 'w {pages} - - - - 262' > /etc/tmpfiles.d/rocade-node1.conf",
        'mkdir -p /dev/hugepages',
        'mount -t hugetlbfs none /dev/hugepages',
        'modprobe vfio-pci',
        'echo vfio-pci > /etc/modules-load.d/rocade-node.conf',
        'IOMMU: an IOMMU'], 'what it does')
    # Both nodes, when no NIC is named.
    both = machine.does('prepare', '--hugepages', '16')
    tap.equal(len([line for line in both if 'tmpfiles' in line]), 2, both)


@on_machine
def prepares_once(machine):
    for node in (0, 1):
        machine.put(PAGES.format(node) + '/free_hugepages', '256')
    machine.put('proc/mounts', 'none /dev/hugepages hugetlbfs rw 0 0')
    (machine.root / 'sys/bus/pci/drivers/vfio-pci').mkdir(parents=True)
    lines = machine.does('prepare')
    # All is there, and was not at the last boot.
    tap.equal([line for line in lines if '>' in line], [
        f"echo 'w /{PAGES.format(node)}/nr_hugepages - - - - 10' > "
        f'/etc/tmpfiles.d/rocade-node{node}.conf' for node in (0, 1)], 'for the next one')
    for node in (0, 1):
        machine.put(f'etc/tmpfiles.d/rocade-node{node}.conf',
                    f'w /{PAGES.format(node)}/nr_hugepages - - - - 10')
    lines = machine.does('prepare')
    tap.true(len(lines) == 5 and not any('>' in line or 'mount ' in line for line in lines), lines)


@on_machine
def comes_again_at_the_next_boot(machine):
    """What is to be read then is understood by those who read it."""
    pages = PAGES.format(1) + '/nr_hugepages'
    for said in machine.does('prepare', OTHER):
        if 'etc/' in said:
            machine.put(*echoed(said))
    tap.equal(sorted(path.name for path in (machine.root / 'etc').glob('*/rocade*')),
              ['rocade-node.conf', 'rocade-node1.conf'], 'files')
    try:
        done = subprocess.run(['systemd-tmpfiles', f'--root={machine.root}', '--create',
                               'rocade-node1.conf'], capture_output=True, text=True, check=False)
    except OSError:
        raise tap.Skip('no systemd-tmpfiles here') from None
    tap.equal(done.returncode, 0, done.stderr)
    tap.equal((machine.root / pages).read_text().strip(), '262', done.stderr)


@on_machine
def an_engines_pages_are_not_missing(machine):
    """Prepared before it started, and asked again while it runs."""
    machine.as_prepared()
    machine.put(PAGES.format(0) + '/free_hugepages', '100')
    missing = machine.does('prepare', NIC)
    tap.true(missing[0].startswith('echo 166 '), missing)
    machine.process(77, 'rocaded')
    machine.put('proc/77/numa_maps', '\n'.join((
        '7f0000000000 default file=/dev/hugepages/a huge dirty=2 N0=100 N1=3 '
        'kernelpagesize_kB=2048',
        '7f0000000000 default file=/dev/hugepages/b huge dirty=1 N0=57 kernelpagesize_kB=2048',
        '7f1000000000 default file=/dev/hugepages/c huge dirty=1 N0=9 kernelpagesize_kB=1048576',
        '7f2000000000 default anon=9 dirty=9 N0=9 kernelpagesize_kB=4')))
    tap.equal(machine.does('prepare', NIC)[0],
              "hugepages of NUMA node 0: 200 MiB free, 314 MiB an engine's", 'held')
    # Anybody may give a process any name.
    (machine.root / 'proc/78').mkdir()
    (machine.root / 'proc/78/comm').write_bytes(b'\xff\xfe\n')
    machine.does('prepare', NIC)
    # Those of the other node are not these, nor are those of somebody else.
    machine.put(PAGES.format(1) + '/free_hugepages', '100')
    tap.true(machine.does('prepare', OTHER)[0].startswith('echo 163 '), 'the other node')
    machine.process(77, 'postgres')
    tap.true(machine.does('prepare', NIC)[0].startswith('echo 166 '), "somebody else's")


@on_machine
def engines_are_of_who_is_trusted(machine):
    """Anybody may give a process any name, and its file."""
    def held():
        return not machine.does('prepare', NIC)[0].startswith('echo')

    stranger, account = os.getuid() + 4321, os.getuid() + 999
    machine.as_prepared()
    machine.put(PAGES.format(0) + '/free_hugepages', '100')
    machine.put('etc/passwd', f'root:x:0:0::/root:/bin/sh\nrocade:x:{account}:9::/:/bin/false\n')
    for program, comm, owner, is_engine in (
            ('rocaded', 'rocaded', 0, True), ('rocaded (deleted)', 'renamed', 0, True),
            ('rocaded', 'rocaded', account, True), ('rocaded', 'rocaded', stranger, False),
            ('bash', 'rocaded', 0, False)):
        machine.process(77, program, comm, owner)
        machine.put('proc/77/numa_maps', '7f00 default huge N0=200 kernelpagesize_kB=2048')
        tap.equal(held(), is_engine, (program, comm, owner))
    # The file is not shown to everybody.
    machine.process(77, 'rocaded')
    (machine.root / 'proc/77/exe').unlink()
    tap.true(held(), 'by its name')
    # It has ended by now.
    (machine.root / 'proc/77/numa_maps').unlink()
    tap.true(not held(), 'one that ends')


@on_machine
def processes_end_while_they_are_looked_at(machine):
    """Here, when the list of their files is wanted."""
    machine.link(f'sys/bus/pci/devices/{NIC}/driver', '../../drivers/vfio-pci')
    for number in (76, 77, 78):
        machine.process(number, 'rocaded', 'rocaded\x1b[2J')
        machine.link(f'proc/{number}/fd/9', '/dev/vfio/0')
    program = f"""
        import os, pathlib, sys
        sys.path.insert(0, {str(ROCADE.parent)!r})
        import rocade_node
        def ends(function):
            def run(path, *more):
                if str(path).endswith('77/fd'):
                    raise ProcessLookupError(3, 'No such process')
                return function(path, *more)
            return run
        os.listdir, os.scandir = ends(os.listdir), ends(os.scandir)
        node = rocade_node.Node({str(machine.root)!r})
        print(node.holders(node.find({NIC!r})))
        """
    done = subprocess.run([sys.executable, '-c', textwrap.dedent(program)], capture_output=True,
                          text=True, check=False)
    tap.equal((done.stdout, done.stderr), (
        "['process 76 (rocaded?[2J)', 'process 78 (rocaded?[2J)']\n", ''), 'who has it')


@on_machine
def prepares_as_it_was_told(machine):
    """Once; the next time, and doctor, know."""
    machine.as_prepared()
    machine.link(f'sys/bus/pci/devices/{NIC}/driver', '../../drivers/vfio-pci')
    machine.put(f'etc/driverctl.d/pci-{NIC}', 'vfio-pci')
    machine.put(PAGES.format(0) + '/free_hugepages', '64')
    machine.doctor('node', 'warn', 'echo 202 >', f'rocade node prepare {NIC}')
    words = shlex.split(machine.node('prepare', NIC, '--hugepages', '128')[0])
    files = [words[at + 3:at:-2] for at, word in enumerate(words) if word == 'echo']
    tap.equal([path for path, _ in files if '/etc/' in path],
              ['/etc/tmpfiles.d/rocade-node0.conf'], 'what is kept')
    for path, text in files:
        machine.put(path.lstrip('/'), text)
    machine.doctor('node', 'ok', 'beside the NICs')
    tap.true(not any('echo' in line for line in machine.does('prepare', NIC)), 'again')
    machine.put(PAGES.format(0) + '/free_hugepages', '60')
    machine.doctor('node', 'warn', 'echo 14 >', f'rocade node prepare {NIC}')
    other = machine.does('prepare', NIC, '--hugepages', '512')[0]
    tap.true(other.startswith('echo 206 >'), other)


@on_machine
def doctor_looks_at_the_same(machine):
    # Nobody is told what to do who has no NIC bound.
    machine.doctor('node', 'ok', 'not yet, and none is')
    machine.doctor('nics', 'ok', "3 on PCI, all the kernel's")
    machine.doctor('iommu', 'ok', 'an IOMMU')
    machine.as_prepared()
    machine.doctor('node', 'ok', 'as it is to be')
    machine.link(f'sys/bus/pci/devices/{OTHER}/driver', '../../drivers/vfio-pci')
    machine.put(f'etc/driverctl.d/pci-{OTHER}', 'vfio-pci')
    machine.doctor('node', 'ok', 'at the next boot too')
    machine.doctor('nics', 'ok', '1 of 3 on PCI bound')
    # Each of what "prepare" sees to, and on the NUMA node of the NIC.
    remedy = f'rocade node prepare {OTHER}'
    machine.put(PAGES.format(0) + '/free_hugepages', '4')
    machine.doctor('node', 'ok', 'beside the NICs')
    for path, text, what in (
            (PAGES.format(1) + '/free_hugepages', '4', 'echo 262 > /sys/devices/system/node'),
            ('etc/tmpfiles.d/rocade-node1.conf', 'w', 'echo \'w /sys'),
            ('etc/modules-load.d/rocade-node.conf', '', 'echo vfio-pci'),
            ('proc/mounts', 'none / ext4 rw 0 0', 'mount -t hugetlbfs')):
        before = (machine.root / path).read_text().strip()
        machine.put(path, text)
        machine.doctor('node', 'warn', what, remedy)
        machine.put(path, before)
    machine.doctor('node', 'ok', 'beside the NICs')
    (machine.root / 'sys/bus/pci/drivers/vfio-pci').rmdir()
    machine.doctor('node', 'warn', 'modprobe vfio-pci', remedy)


@on_machine
def doctor_looks_at_what_is_bound(machine):
    machine.as_prepared()
    machine.link(f'sys/bus/pci/devices/{OTHER}/driver', '../../drivers/vfio-pci')
    machine.doctor('nics', 'warn', f'{OTHER}: bound until the next boot',
                   f'rocade node unbind {OTHER}')
    # What was to be bound at the boot, and is not.
    machine.put(f'etc/driverctl.d/pci-{NIC}', 'vfio-pci')
    machine.put(f'etc/driverctl.d/pci-{OTHER}', 'vfio-pci')
    machine.doctor('nics', 'warn', f'{NIC}: is to be bound, and has driver ixgbe', 'driverctl')
    machine.link(f'sys/bus/pci/devices/{NIC}/driver', '../../drivers/vfio-pci')
    machine.doctor('nics', 'ok', '2 of 3')
    # The service's account, which the rule of udev's lets in.
    machine.put('etc/passwd', 'root:x:0:0::/root:/bin/sh\nrocade:x:999:999::/:/bin/false\n')
    machine.doctor('nics', 'warn', f'{NIC}: the account rocade may not open it',
                   f'rocade node bind {NIC}')
    for nic in (NIC, OTHER):
        said = machine.does('bind', nic)[-1]
        machine.put(*echoed(said))
    machine.doctor('nics', 'ok', '2 of 3')
    groups = machine.root / 'sys/kernel/iommu_groups'
    groups.rename(groups.with_name('none'))
    machine.doctor('iommu', 'fail', f'none, and {NIC}, {OTHER} bound', 'no IOMMU')
    for nic in (NIC, OTHER):
        machine.link(f'sys/bus/pci/devices/{nic}/driver', '../../drivers/ixgbe')
    machine.doctor('iommu', 'warn', 'none', 'only for NICs that are bound')


@on_machine
def says_what_is_missing(machine):
    groups = machine.root / 'sys/kernel/iommu_groups'
    groups.rename(groups.with_name('none'))
    machine.refuses('intel_iommu=on', 'prepare')
    machine.refuses('intel_iommu=on', 'bind', NIC)
    machine.put('proc/cpuinfo', 'vendor_id : AuthenticAMD')
    machine.refuses('iommu=pt', 'prepare')
    machine.put('sys/module/vfio/parameters/enable_unsafe_noiommu_mode', 'Y')
    tap.true('reaches all memory' in machine.does('prepare')[-1], 'without an IOMMU')
    machine.does('bind', NIC)
    machine.put('sys/devices/system/node/node0/meminfo', 'Node 0 MemTotal:       4194304 kB')
    machine.refuses('of the 4096 MiB that NUMA node 0 has', 'prepare', NIC, '--hugepages', '2048')
    machine.does('prepare', NIC, '--hugepages', '2048', '--force')
    for size in ('0', '-1', '99999999'):
        tap.true(machine.node('prepare', '--hugepages', size)[2], size)


@on_machine
def binds(machine):
    tap.equal(machine.does('bind', NIC, 'eth2'), [
        'modprobe vfio-pci', f'driverctl set-override {NIC} vfio-pci',
        'modprobe vfio-pci', f'driverctl set-override {OTHER} vfio-pci'], 'two')
    tap.true('beside the kernel' in machine.does('bind', MLX)[0], 'mlx5')
    machine.link(f'sys/bus/pci/devices/{NIC}/driver', '../../drivers/vfio-pci')
    tap.equal(machine.does('bind', NIC),
              [f'{NIC}: bound to vfio-pci already, until the next boot'], 'again')
    machine.put(f'etc/driverctl.d/pci-{NIC}', 'vfio-pci')
    tap.equal(machine.does('bind', NIC), [f'{NIC}: bound to vfio-pci already'], 'for good')
    # The service's account gets in, now and after a boot.
    machine.put('etc/passwd', 'root:x:0:0::/root:/bin/sh\nrocade:x:999:999::/:/bin/false\n')
    rule = f'etc/udev/rules.d/70-rocade-{OTHER}.rules'
    said = machine.does('bind', OTHER)[0]
    path, text = echoed(said)
    tap.equal(path, rule, said)
    tap.true(f'KERNEL=="{OTHER}"' in text and "-c 'chown rocade: /dev/vfio/$$(b" in text, text)
    machine.put(path, text)
    tap.true(not any(rule in line for line in machine.does('bind', OTHER)), 'twice')
    # One that was bound before there was an account.
    tap.true(machine.does('bind', NIC)[1].endswith(f'70-rocade-{NIC}.rules'), 'bound before')
    (machine.programs / 'driverctl').unlink()
    lines = machine.does('bind', OTHER)
    tap.equal(lines[1], f'dpdk-devbind.py -b vfio-pci {OTHER}', 'without driverctl')
    tap.true('until the next boot' in lines[2], lines)


@on_machine
def leaves_what_is_in_use(machine):
    machine.put('sys/class/net/eth1/flags', '0x1003')
    machine.refuses('--force binds it', 'bind', NIC)
    machine.does('bind', NIC, '--force')
    # The default route must be told twice, whatever lies between.
    machine.routes('eth1')
    machine.refuses('default route', 'bind', NIC)
    machine.refuses('--force --force', 'bind', '--force', NIC)
    machine.does('bind', '--force', NIC, '--force')
    machine.routes('bond0.5')
    machine.does('bind', 'eth2')
    (machine.root / 'sys/class/net/bond0.5/lower_bond0').mkdir(parents=True)
    (machine.root / 'sys/class/net/bond0/lower_eth2').mkdir(parents=True)
    machine.refuses('default route', 'bind', 'eth2', '--force')
    # Nor is one taken when nobody can say.
    machine.program('ip', 'echo garbage')
    machine.refuses('default route', 'bind', 'eth2', '--force')


@on_machine
def leaves_what_others_may_use(machine):
    """A netdev in another network namespace is not to be seen; virtual functions go with theirs."""
    (machine.root / f'sys/bus/pci/devices/{NIC}/net/eth1').rmdir()
    machine.refuses('a container may have it', 'bind', NIC)
    machine.does('bind', NIC, '--force')
    machine.put(f'sys/bus/pci/devices/{OTHER}/sriov_numvfs', '4')
    machine.refuses('virtual functions', 'bind', OTHER)
    machine.does('bind', OTHER, '--force')


@on_machine
def groups_are_taken_whole(machine):
    machine.device('0000:03:00.2', '0x010600', 'ahci', 0)
    machine.refuses('shares its IOMMU group with 0000:03:00.2', 'bind', NIC)
    machine.device('0000:03:00.2', '0x060400', 'pcieport', 0)
    machine.does('bind', NIC)
    machine.link(f'sys/kernel/iommu_groups/0/devices/{OTHER}',
                 machine.root / f'sys/bus/pci/devices/{OTHER}')
    machine.refuses('shares its IOMMU group', 'bind', NIC)
    machine.does('bind', NIC, OTHER)


@on_machine
def unbinds(machine):
    tap.equal(machine.does('unbind', NIC), [f"{NIC}: has the kernel's driver ixgbe already"],
              'nothing to do')
    machine.link(f'sys/bus/pci/devices/{NIC}/driver', '../../drivers/vfio-pci')
    tap.equal(machine.does('unbind', NIC), [f'driverctl unset-override {NIC}'], 'back')
    # The kernel would wait for who has it.
    machine.put('proc/77/comm', 'rocaded')
    machine.link('proc/77/fd/9', '/dev/vfio/0')
    machine.refuses('process 77 (rocaded) has it', 'unbind', NIC)
    machine.link('proc/77/fd/9', '/dev/vfio/noiommu-0')
    machine.refuses('process 77 (rocaded) has it', 'unbind', NIC)
    (machine.root / f'sys/bus/pci/devices/{NIC}/uio/uio3').mkdir(parents=True)
    machine.link('proc/77/fd/9', '/dev/uio3')
    machine.refuses('process 77 (rocaded) has it', 'unbind', NIC)
    machine.link('proc/77/fd/9', '/dev/vfio/1')
    machine.put(f'etc/udev/rules.d/70-rocade-{NIC}.rules', 'x')
    tap.equal(machine.does('unbind', NIC)[0], f'rm /etc/udev/rules.d/70-rocade-{NIC}.rules',
              'nobody is let in any more')
    (machine.root / f'etc/udev/rules.d/70-rocade-{NIC}.rules').unlink()
    (machine.programs / 'driverctl').unlink()
    tap.equal(machine.does('unbind', NIC), [
        f'dpdk-devbind.py -u {NIC}', f"echo '' > /sys/bus/pci/devices/{NIC}/driver_override",
        f'echo {NIC} > /sys/bus/pci/drivers_probe'], 'without driverctl')


@tap.test
def words():
    for line in ('bind', 'unbind', 'paint eth0'):
        done = subprocess.run([sys.executable, ROCADE, 'node', *line.split()], capture_output=True,
                              text=True, check=False)
        tap.true(done.returncode == 1 and 'node bind NIC...' in done.stderr, done.stderr)
    done = subprocess.run([sys.executable, ROCADE, 'node', 'prepare', '--root', '/nowhere'],
                          capture_output=True, text=True, check=False)
    tap.true(done.returncode == 1 and '--dry-run' in done.stderr, done.stderr)


if __name__ == '__main__':
    sys.exit(tap.run())
