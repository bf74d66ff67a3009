# SPDX-License-Identifier: BSD-3-Clause
"""rocade node: a machine whose NICs DPDK drives. What it takes is made ready, and NICs are given to
vfio-pci and back to the kernel.

dpdk-devbind.py and driverctl do the work: what driverctl binds is bound again at the next boot.
Nothing is done twice, and each thing that is done is said, or with --dry-run only said.
"""
import collections
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

from rocade_engine import Failure, printable

WANTED_MIB = 512    # hugepages of an engine with its clients, of one NUMA node
PAGE_MIB = 2
BRIDGE, NETWORK = '0x06', '0x02'
USER_DRIVERS = ('vfio-pci', 'uio_pci_generic', 'igb_uio')
# Their drivers of DPDK work beside the kernel's.
SHARED_VENDORS = {'0x15b3': 'mlx5 or mlx4'}

# Of the service. VFIO's doors are root's, and a door's number is another after a boot.
ACCOUNT = 'rocade'
RULE = 'ACTION=="bind", SUBSYSTEM=="pci", KERNEL=="{nic}", DRIVER=="vfio-pci", ' \
    'RUN+="/bin/sh -c \'chown {account}: ' \
    '/dev/vfio/$$(basename $$(readlink /sys%p/iommu_group))\'"\n'

Action = collections.namedtuple('Action', 'said run')


def read(path, default=''):
    try:
        return pathlib.Path(path).read_text(encoding='utf-8', errors='replace').strip()
    except OSError:
        return default


def last(path):
    """The last word of a link of sysfs."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return ''


def entries(folder):
    """What is in it; nothing of one that is gone by now, as processes go."""
    try:
        return sorted(folder / name for name in os.listdir(folder))
    except OSError:
        return []


def command(*words):
    """An action that is a program's."""
    def run():
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except OSError as err:
            raise Failure(f'{words[0]}: {err.strerror}') from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip()
            raise Failure(f'{" ".join(words)}: {said or done.returncode}')
    return Action(shlex.join(words), run)


def put(path, text):
    """An action that writes a file."""
    def run():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding='utf-8')
    return Action(f'echo {shlex.quote(text.strip())} > {shlex.quote(str(path))}', run)


class Node:
    """A machine; root is where its files are."""

    def __init__(self, root='/'):
        self.root = pathlib.Path(root)

    def path(self, text):
        return self.root / text.lstrip('/')

    def nic(self, folder):
        return {
            'nic': folder.name,
            'driver': last(folder / 'driver'),
            # Those of virtio are a device further down.
            'netdevs': sorted(path.name for place in ('net', 'virtio*/net')
                              for path in folder.glob(f'{place}/*')),
            'numa_node': max(int(read(folder / 'numa_node', '-1')), 0),
            'iommu_group': last(folder / 'iommu_group'),
            'vendor': read(folder / 'vendor'),
            'kept': self.path(f'/etc/driverctl.d/pci-{folder.name}').exists(),
        }

    def nics(self):
        folders = self.path('/sys/bus/pci/devices').glob('*')
        return [self.nic(folder) for folder in sorted(folders)
                if read(folder / 'class').startswith(NETWORK)]

    def find(self, name):
        """A NIC by its address, with or without the domain, or by its netdev."""
        for nic in self.nics():
            if name in (nic['nic'], nic['nic'].removeprefix('0000:'), *nic['netdevs']):
                return nic
        raise Failure(f'{name}: no NIC on a PCI bus; there are '
                      f'{", ".join(nic["nic"] for nic in self.nics()) or "none"}')

    def below(self, netdev):
        """A netdev with all that carry it: those of a bond, a bridge, a VLAN."""
        found = {netdev}
        for path in self.path(f'/sys/class/net/{netdev}').glob('lower_*'):
            found |= self.below(path.name.removeprefix('lower_'))
        return found

    def default_routes(self):
        found = set()
        for family in ('-4', '-6'):
            try:
                # Those of policies and of VRFs too.
                said = subprocess.run(['ip', family, '-j', 'route', 'show', 'table', 'all',
                                       'default'], capture_output=True, text=True,
                                      check=False).stdout
                routes = json.loads(said or '[]')
            except (OSError, ValueError):
                raise Failure('ip does not tell the default route: is iproute2 there?') from None
            for route in routes:
                for hop in (route, *route.get('nexthops', [])):
                    found |= self.below(hop['dev']) if 'dev' in hop else set()
        return found

    def use(self, nic):
        """(how often one must be told, what for)"""
        routes = self.default_routes()
        for netdev in nic['netdevs']:
            if netdev in routes:
                return 2, f'{netdev} carries the default route: without it nobody may get here'
            folder = self.path(f'/sys/class/net/{netdev}')
            if int(read(folder / 'flags', '0'), 16) & 1 or (folder / 'master').exists():
                return 1, f'{netdev} is in use by the kernel'
        if int(read(self.path(f'/sys/bus/pci/devices/{nic["nic"]}/sriov_numvfs'), '0')):
            return 1, 'its virtual functions, which somebody may use, go with it'
        if nic['driver'] not in ('', *USER_DRIVERS) and not nic['netdevs']:
            return 1, 'its netdev is not to be seen: a container may have it'
        return 0, ''

    def holders(self, nic):
        """Processes that have the NIC's group of VFIO open, or its UIO: the kernel would wait for
        them."""
        group = nic['iommu_group']
        doors = {f'/dev/vfio/{group}', f'/dev/vfio/noiommu-{group}'} if group else set()
        doors |= {f'/dev/{path.name}'
                  for path in self.path(f'/sys/bus/pci/devices/{nic["nic"]}/uio').glob('uio*')}
        doors |= {f'/dev/vfio/devices/{path.name}' for path in
                  self.path(f'/sys/bus/pci/devices/{nic["nic"]}/vfio-dev').glob('vfio*')}
        return [f'process {process.name} ({printable(read(process / "comm"))})'
                for process in self.processes()
                if any(_link(path) in doors for path in entries(process / 'fd'))]

    def neighbours(self, nic):
        """What shares its IOMMU group, and is neither a bridge nor left alone by the kernel."""
        group = self.path(f'/sys/kernel/iommu_groups/{nic["iommu_group"]}/devices')
        return [path.name for path in sorted(group.glob('*'))
                if path.name != nic['nic'] and last(path / 'driver') not in ('', *USER_DRIVERS)
                and not read(path / 'class').startswith(BRIDGE)]

    def iommu(self):
        """(whether VFIO can be used, a sentence)"""
        if any(self.path('/sys/kernel/iommu_groups').glob('*')):
            return True, 'an IOMMU'
        if read(self.path('/sys/module/vfio/parameters/enable_unsafe_noiommu_mode')) in ('Y', '1'):
            return True, 'no IOMMU, and VFIO told to do without: a NIC reaches all memory'
        cpu = read(self.path('/proc/cpuinfo'))
        if 'GenuineIntel' in cpu:
            how = 'VT-d in the firmware, and intel_iommu=on iommu=pt on the kernel command line'
        elif 'AuthenticAMD' in cpu:
            how = 'the IOMMU in the firmware, and iommu=pt on the kernel command line'
        else:
            how = 'the IOMMU in the firmware'
        return False, f'no IOMMU that the kernel uses: {how}; in a virtual machine its host has ' \
            'to give it one'

    def hugepages(self, numa_node):
        """(folder, pages, MiB that nobody has)"""
        folder = self.path(f'/sys/devices/system/node/node{numa_node}/hugepages/'
                           f'hugepages-{PAGE_MIB * 1024}kB')
        return folder, int(read(folder / 'nr_hugepages', '0')), \
            int(read(folder / 'free_hugepages', '0')) * PAGE_MIB

    def processes(self):
        return [path for path in entries(self.path('/proc')) if path.name.isdecimal()]

    def is_engine(self, process):
        """Of somebody who is trusted here: a name is anybody's to take, of a file as well."""
        account = re.search(rf'^{ACCOUNT}:[^:]*:(\d+):', read(self.path('/etc/passwd')), re.M)
        owner = re.search(r'^Uid:\s+(\d+)', read(process / 'status'), re.M)
        if not owner or int(owner[1]) not in {0, os.getuid(), int(account[1]) if account else 0}:
            return False
        # Of another account's processes root alone is told the file.
        name = last(process / 'exe') or read(process / 'comm')
        return name.removesuffix(' (deleted)') == 'rocaded'

    def held(self, numa_node):
        """MiB of them that engines have: what is prepared for one is not missing while it runs."""
        pages = 0
        for process in self.processes():
            if not self.is_engine(process):
                continue
            try:
                maps = (process / 'numa_maps').read_text(encoding='utf-8', errors='replace')
            except FileNotFoundError:  # it has ended
                continue
            except OSError:  # root may look
                _, total, free = self.hugepages(numa_node)
                return total * PAGE_MIB - free
            pages += sum(int(found[1]) for line in maps.splitlines()
                         if ' huge ' in line and f'kernelpagesize_kB={PAGE_MIB * 1024}' in line
                         for found in [re.search(rf' N{numa_node}=(\d+)', line)] if found)
        return pages * PAGE_MIB

    def memory(self, numa_node):
        """MiB of it; 0: not known"""
        found = re.search(r'MemTotal:\s+(\d+) kB',
                          read(self.path(f'/sys/devices/system/node/node{numa_node}/meminfo')))
        return int(found[1]) // 1024 if found else 0

    def has_account(self):
        return f'\n{ACCOUNT}:' in '\n' + read(self.path('/etc/passwd'))

    def mounted(self):
        return ' hugetlbfs ' in read(self.path('/proc/mounts'))

    def vfio(self):
        return self.path('/sys/bus/pci/drivers/vfio-pci').exists()

    def vfio_is_built_in(self):
        """A part of the kernel, and no module: those alone have a state."""
        return self.vfio() and not self.path('/sys/module/vfio_pci/initstate').exists()


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return ''


class Job:
    """What a command was told, and the doing. Without options it says and does nothing, and what it
    would have done is to be seen in "wanted": so doctor asks."""

    def __init__(self, node, words=(), **options):
        self.node, self.words = node, words
        self.dry_run = options.get('dry_run', True)
        self.force = options.get('force', 0)
        self.hugepages = options.get('hugepages')
        self.say = print if options else lambda text: None
        self.wanted = []

    def do(self, actions):
        for action in actions:
            self.wanted.append(action.said)
            self.say(action.said if self.dry_run else f'did: {action.said}')
            if not self.dry_run:
                action.run()

    def keep(self, path, text):
        """What the next boot reads. True: it is another text now."""
        changes = read(path) != text.strip()
        if changes:
            self.do([put(path, text)])
        return changes


def wanted_hugepages(job, conf):
    """MiB: as told, else as told the last time."""
    found = re.search(r'^# --hugepages (\d+)$', read(conf), re.M)
    return job.hugepages or (int(found[1]) if found else WANTED_MIB)


def prepare_hugepages(job, numa_node):
    node = job.node
    conf = node.path(f'/etc/tmpfiles.d/rocade-node{numa_node}.conf')
    wanted = wanted_hugepages(job, conf)
    folder, before, free = node.hugepages(numa_node)
    pages = before
    held = node.held(numa_node)
    if free + held >= wanted:
        job.say(f'hugepages of NUMA node {numa_node}: {free} MiB free' +
                (f', {held} MiB an engine\'s' if held else ''))
    else:
        pages += -(-(wanted - free - held) // PAGE_MIB)
        total = node.memory(numa_node)
        if total and pages * PAGE_MIB > total // 2 and not job.force:
            raise Failure(f'{pages} hugepages would be {pages * PAGE_MIB} MiB of the {total} MiB '
                          f'that NUMA node {numa_node} has: --force takes them anyway')
        job.do([put(folder / 'nr_hugepages', f'{pages}\n')])
        found = node.hugepages(numa_node)[1]
        if found < pages and not job.dry_run:
            job.do([put(folder / 'nr_hugepages', f'{before}\n')])
            raise Failure(f'the kernel finds {found} of {pages} hugepages on NUMA node '
                          f'{numa_node}: give it hugepages={pages} on its command line, before '
                          'memory is in pieces')
    job.keep(conf, (f'# --hugepages {wanted}\n' if wanted != WANTED_MIB else '') +
             f'w /{folder.relative_to(node.root)}/nr_hugepages - - - - {pages}\n')


def prepare_system(job, nics):
    """Hugepages where the NICs are, and VFIO; all of it at the next boot as well."""
    node = job.node
    for numa_node in sorted({nic['numa_node'] for nic in nics} or {0}):
        prepare_hugepages(job, numa_node)
    if node.mounted():
        job.say('hugetlbfs: mounted')
    else:
        job.do([command('mkdir', '-p', '/dev/hugepages'),
                command('mount', '-t', 'hugetlbfs', 'none', '/dev/hugepages')])
    if node.vfio():
        job.say('vfio-pci: there')
    else:
        job.do([command('modprobe', 'vfio-pci')])
    if not node.vfio_is_built_in():
        job.keep(node.path('/etc/modules-load.d/rocade-node.conf'), 'vfio-pci\n')


def prepare(job):
    """The system, and an IOMMU, which nobody can make."""
    node = job.node
    prepare_system(job, [node.find(name) for name in job.words[1:]] or node.nics())
    fine, what = node.iommu()
    if not fine:
        raise Failure(what)
    job.say(f'IOMMU: {what}')


def rule_of(node, nic):
    return node.path(f'/etc/udev/rules.d/70-rocade-{nic["nic"]}.rules')


def let_account_in(job, nic):
    """A rule of udev's: whenever VFIO gets the NIC, the service's account may open it. True: it is
    a new one."""
    node = job.node
    changes = node.has_account() and job.keep(rule_of(node, nic),
                                              RULE.format(nic=nic['nic'], account=ACCOUNT))
    if changes:
        reload_rules(job)
    return changes


def keep_account_out(job, nic):
    path = rule_of(job.node, nic)
    if path.exists():
        job.do([Action(f'rm {path}', path.unlink)])
        reload_rules(job)


def udev_runs():
    return shutil.which('udevadm') and os.path.exists('/run/udev/control')


def reload_rules(job):
    if udev_runs():
        job.do([command('udevadm', 'control', '--reload')])


def bind_one(job, nic, others):
    node = job.node
    if nic['driver'] in USER_DRIVERS:
        job.say(f'{nic["nic"]}: bound to {nic["driver"]} already' +
                ('' if nic['kept'] else ', until the next boot'))
        # The account may be younger than that.
        if nic['driver'] == 'vfio-pci' and let_account_in(job, nic) and udev_runs():
            job.do([command('udevadm', 'trigger', '--action=bind',
                            f'/sys/bus/pci/devices/{nic["nic"]}')])
        return
    if nic['vendor'] in SHARED_VENDORS:
        job.say(f'{nic["nic"]}: not bound, its driver of DPDK ({SHARED_VENDORS[nic["vendor"]]}) '
                "works beside the kernel's")
        return
    told, what = node.use(nic)
    if told > job.force:
        raise Failure(f'{nic["nic"]}: {what}; ' + ' '.join(['--force'] * told) + ' binds it anyway')
    fine, missing = node.iommu()
    if not fine:
        raise Failure(missing)
    beside = [name for name in node.neighbours(nic) if name not in others]
    if beside:
        raise Failure(f'{nic["nic"]} shares its IOMMU group with {", ".join(beside)}: VFIO takes '
                      'them together, or none')
    let_account_in(job, nic)
    actions = [] if node.vfio() else [command('modprobe', 'vfio-pci')]
    if shutil.which('driverctl'):
        job.do([*actions, command('driverctl', 'set-override', nic['nic'], 'vfio-pci')])
    else:
        job.do([*actions, command('dpdk-devbind.py', *['--force'] * bool(job.force), '-b',
                                  'vfio-pci', nic['nic'])])
        job.say(f'{nic["nic"]}: until the next boot; with driverctl it would stay (apt-get install '
                'driverctl)')


def bind(job):
    nics = [job.node.find(name) for name in job.words[1:]]
    for nic in nics:
        bind_one(job, nic, [other['nic'] for other in nics])


def unbind(job):
    node = job.node
    for nic in [node.find(name) for name in job.words[1:]]:
        if nic['driver'] not in ('', *USER_DRIVERS):
            job.say(f'{nic["nic"]}: has the kernel\'s driver {nic["driver"]} already')
            continue
        holders = node.holders(nic)
        if holders:
            raise Failure(f'{nic["nic"]}: {", ".join(holders)} has it: rocade link del, or rocade '
                          'down, first')
        keep_account_out(job, nic)
        if shutil.which('driverctl'):
            job.do([command('driverctl', 'unset-override', nic['nic'])])
            continue
        unbinding = [command('dpdk-devbind.py', '-u', nic['nic'])] if nic['driver'] else []
        job.do([*unbinding, put(node.path(f'/sys/bus/pci/devices/{nic["nic"]}/driver_override'),
                                '\n'),
                put(node.path('/sys/bus/pci/drivers_probe'), nic['nic'])])


def line(nic):
    return f'{nic["nic"]} driver {nic["driver"] or "none"} netdev ' \
        f'{",".join(nic["netdevs"]) or "none"} numa_node {nic["numa_node"]} iommu_group ' \
        f'{nic["iommu_group"] or "none"} next_boot {"vfio-pci" if nic["kept"] else "kernel"}'


def node_command(args, show, usage):
    """
    rocade node.

    @param show  prints a list, as the other commands do
    """
    node = Node(args.root)
    verb = args.words[0] if args.words else 'show'
    if verb == 'show':
        names = args.words[1:]
        show(args, [node.find(name) for name in names] if names else node.nics(), line)
        return
    verbs = {'prepare': prepare, 'bind': bind, 'unbind': unbind}
    if verb not in verbs or (verb != 'prepare' and len(args.words) < 2):
        raise Failure(usage)
    if args.hugepages is not None and not re.fullmatch(r'[1-9][0-9]{0,6}', str(args.hugepages)):
        raise Failure(f'--hugepages: {args.hugepages} is no number of MiB')
    if args.root != '/' and not args.dry_run:
        raise Failure('--root: only with --dry-run')
    if os.geteuid() != 0 and not args.dry_run:
        raise Failure(f'node {verb}: root does that')
    verbs[verb](Job(node, args.words, dry_run=args.dry_run, force=args.force,
                    hugepages=args.hugepages))


# What doctor asks: what the commands above would do for the NICs that are bound, or are to be.

def users(node):
    return [nic for nic in node.nics() if nic['driver'] in USER_DRIVERS or nic['kept']]


def check_iommu(node):
    fine, what = node.iommu()
    if fine:
        return 'ok', what, ''
    bound = [nic['nic'] for nic in node.nics() if nic['driver'] == 'vfio-pci']
    return ('fail', f'none, and {", ".join(bound)} bound', what) if bound else \
        ('warn', 'none', f'only for NICs that are bound: {what}')


def check_prepared(node):
    nics = users(node)
    job = Job(node)
    try:
        prepare_system(job, nics or node.nics())
    except Failure as failure:
        job.wanted.append(str(failure))
    if not nics:
        return 'ok', 'for a NIC that is bound: ' + \
            ('as it is to be' if not job.wanted else 'not yet, and none is'), ''
    if job.wanted:
        return 'warn', f'not as bound NICs want it: {"; ".join(job.wanted)}', \
            f'rocade node prepare {" ".join(nic["nic"] for nic in nics)}'
    return 'ok', 'hugepages beside the NICs, and vfio-pci, at the next boot too', ''


def check_bound(node, nic):
    """(what is wrong with it, a remedy)"""
    name = nic['nic']
    if nic['driver'] not in USER_DRIVERS:
        return f'is to be bound, and has driver {nic["driver"] or "none"}', \
            f'driverctl set-override {name} vfio-pci, or driverctl unset-override {name}'
    if not nic['kept']:
        return 'bound until the next boot', \
            f'rocade node unbind {name}; rocade node bind {name}, with driverctl installed'
    job = Job(node)
    bind_one(job, nic, [])
    if job.wanted:
        return f'the account {ACCOUNT} may not open it', f'rocade node bind {name}'
    return '', ''


def check_nics(node):
    nics, bound = node.nics(), users(node)
    if not bound:
        return 'ok', f'{len(nics)} on PCI, all the kernel\'s', ''
    faults = [(nic['nic'], *check_bound(node, nic)) for nic in bound]
    faults = [fault for fault in faults if fault[1]]
    if faults:
        return 'warn', ', '.join(f'{nic}: {what}' for nic, what, _ in faults), \
            '; '.join(remedy for _, _, remedy in faults)
    return 'ok', f'{len(bound)} of {len(nics)} on PCI bound', ''


def checks(root):
    """[(name, function that says state, what, remedy)] of the machine whose files are there."""
    node = Node(root)
    return [('iommu', lambda: check_iommu(node)), ('node', lambda: check_prepared(node)),
            ('nics', lambda: check_nics(node))]
