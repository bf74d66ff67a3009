# SPDX-License-Identifier: BSD-3-Clause
"""An engine outside, and pods: network namespaces with processes in them, in two pairs that have
equal addresses,

  pod a: 10.9.0.1 [eth0]==veth==[eth0] 10.9.0.2 :pod a2
  pod b: 10.9.0.1 [eth0]==veth==[eth0] 10.9.0.2 :pod b2      and 10.9.7.7 in b alone

made by root, for an engine that becomes another user, or by an ordinary user in user namespaces.
The daemon and libibverbs are the two arguments of the test."""
import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import leash
import tap

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).resolve().parents[2] / 'usertools/rocade'
PYTHON = '/usr/bin/python3'   # root's own may be where nobody else comes
NOBODY, USER, GUEST = 65534, 64324, 64400
NOT_ROOT = {'user': NOBODY, 'group': NOBODY, 'extra_groups': []}
OP_DEVICE, OP_OPEN = 1, 2
DEVICES = ('a', 'a2', 'b', 'b2')
LIMIT = tap.PATIENCE + 60   # of a command, seconds: more than the engine's own patience

# Pods, by their processes: in one user namespace, where they can have a link with each other.
PODS = '''
for i in 1 2 3 4; do
    unshare -n sleep 900 </dev/null >/dev/null &
    pods="$pods $!"
done
mine=$(readlink /proc/self/ns/net)
for pod in $pods; do
    while [ "$(readlink /proc/$pod/ns/net)" = "$mine" ]; do sleep 0.01; done
done
set -- $pods
ip link add eth0 netns $1 mtu 9000 type veth peer name eth0 netns $2 mtu 9000
ip link add eth0 netns $3 mtu 9000 type veth peer name eth0 netns $4 mtu 9000
last=1
for pod in $pods; do
    nsenter -t $pod -n ip addr add 10.9.0.$last/24 dev eth0
    nsenter -t $pod -n ip link set lo up
    nsenter -t $pod -n ip link set eth0 up
    last=$((3 - last))
done
nsenter -t $3 -n ip addr add 10.9.7.7/32 dev eth0
echo $pods
read end
kill $pods 2>/dev/null || :
'''


class Place:
    """An engine, pods, and a device of it in each."""

    def __init__(self, who=None, mode=None, lcores=None, links=0, config=None):
        """@param config  what the configuration says of each pod, for its number; None: none"""
        self.who, self.links, self.config = who or {}, links, config
        self.joins = ['-U', '--preserve-credentials'] if who else []
        self.mode, self.lcores = mode or ('exclusive' if links else 'shared'), lcores

    def __enter__(self):
        if os.geteuid() != 0:
            raise tap.Skip('needs root')
        for path in (ROCADED, LIBRARY, ROCADE, PYTHON):
            if subprocess.run(['test', '-r', path], check=False, **self.who, cwd='/').returncode:
                raise tap.Skip(f'this user can not read {path}')
        with contextlib.ExitStack() as stack:
            self.begin_all(stack)
            self.stack = stack.pop_all()
        return self

    def begin_all(self, stack):
        self.folder = tempfile.mkdtemp(prefix='rcdns')
        stack.callback(shutil.rmtree, self.folder)
        os.chmod(self.folder, 0o777)
        self.socket = f'{self.folder}/run/sock'
        self.env = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
        self.env |= {'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': self.socket,
                     'ROCADE_BUILD_DIR': str(pathlib.Path(LIBRARY).parents[1]),
                     'XDG_RUNTIME_DIR': self.folder}
        self.holder = subprocess.Popen(
            ['unshare', *(['-Urn'] if self.who else ['-n']), 'sh', '-ec', PODS], cwd='/',
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **self.who)
        stack.callback(self.end_pods)
        pods = self.holder.stdout.readline().split()
        if len(pods) != len(DEVICES):
            raise tap.Skip('no network namespaces for this user here')
        self.pods = dict(zip(DEVICES, pods))
        eal = ['--', '--file-prefix', f'rcdns{os.getpid()}', '--no-huge', '-m', '384']
        options = [f'-onetns={self.mode}', '-oidle=sleep', f'-onetns_links={self.links}']
        options += ['--config', self.write_config()] if self.config else []
        options += ['-osocket_mode=0666', *([] if self.who else [f'-ouser={USER}'])]
        stack.callback(self.rocade, 'down', status=None)
        self.rocade('up', '--no-kernel-addresses', *options, *eal,
                    *(['--lcores', self.lcores] if self.lcores else []))
        self.pid = json.loads(self.rocade('-j', 'engine'))['pid']
        leash.leash(self.pid)

    def write_config(self):
        path = f'{self.folder}/conf'
        with open(path, 'w', encoding='utf-8') as file:
            for name, peer in (('roce0', 'roce1'), ('roce1', 'roce0')):
                file.write(f'[device {name}]\ntype = wire\npeer = {peer}\n')
            for name, pod in self.pods.items():
                file.write(f'[device {name}]\n{self.config.format(pod)}\n')
        os.chmod(path, 0o644)
        return path

    def end_pods(self):
        with contextlib.suppress(BrokenPipeError):
            self.holder.communicate('end\n', timeout=60)

    def __exit__(self, *_):
        with self.stack:
            self.rocade('down')

    def add(self, *names):
        for name in names or DEVICES:
            self.rocade('link', 'add', name, 'type', 'udp', 'eth0', 'netns', self.pods[name])

    def begin(self, pod, *command):
        """A process in a pod; None: outside."""
        into = ['nsenter', '-t', self.pods[pod], *self.joins, '-n'] if pod else []
        return subprocess.Popen([*into, *map(str, command)], env=self.env, text=True, cwd='/',
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **self.who)

    def run(self, pod, *command, status=0):
        process = self.begin(pod, *command)
        try:
            out = process.communicate(timeout=LIMIT)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            raise AssertionError(f'{command}: {process.communicate()[0]}') from None
        if status is not None:
            tap.equal(process.returncode, status, f'{command}: {out}')
        return out

    def rocade(self, *words, pod=None, status=0):
        return self.run(pod, PYTHON, ROCADE, '--log', f'{self.folder}/run/log', *words,
                        status=status)

    def guest(self, pod, *words, uid=GUEST, status=0):
        """The command line of a user who has no right, in a pod."""
        no_right = ['setpriv', f'--reuid={uid}', f'--regid={uid}', '--clear-groups',
                    '--inh-caps=-all', '--bounding-set=-all', '--no-new-privs']
        return self.run(pod, *([] if self.who else no_right), PYTHON, ROCADE, 'link', *words,
                        status=status)

    def program(self, pod, *command):
        """One that uses the engine."""
        return [pod, PYTHON, ROCADE, 'run', '--', *command]

    @contextlib.contextmanager
    def servers(self, words):
        """One in each of these pods, by its words; they end with their clients, and well."""
        begun = {}
        try:
            for pod, command in words.items():
                begun[pod] = self.begin(*self.program(pod, *command))
            yield
            for pod, process in begun.items():
                out = process.communicate(timeout=LIMIT)[0]
                tap.true(RPING_END in out if words[pod][0] == 'rping' else
                         process.returncode == 0, f'{words[pod]} in {pod}: {out}')
        finally:
            for process in begun.values():
                process.kill()
                process.communicate()

    def reach(self, pod, *command):
        """A client comes to its server, which may take a moment to listen."""
        def done():
            process = self.begin(*self.program(pod, *command))
            try:
                process.communicate(timeout=LIMIT)
            finally:
                process.kill()
                process.wait()
            return process.returncode == 0
        tap.wait_until(f'{command} in {pod}', done)

    def devices(self, pod):
        lines = self.run(*self.program(pod, 'ibv_devices')).splitlines()
        return {line.split()[0] for line in lines[2:] if line}

    def counts(self, name):
        return json.loads(self.rocade('-j', 'statistic', 'show', 'link', name))[0]['counters']

    def children(self):
        with open(f'/proc/{self.pid}/task/{self.pid}/children', encoding='utf-8') as file:
            return [int(child) for child in file.read().split()]

    def descriptors(self):
        return len(os.listdir(f'/proc/{self.pid}/fd'))


WIRE = {'roce0', 'roce1'}
PINGPONG = ('ibv_rc_pingpong', '-g', '1')
# What a server of rping says at its end, when the client is done and its connection is gone.
RPING_END = 'server DISCONNECT EVENT'
