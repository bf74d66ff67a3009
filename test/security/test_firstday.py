#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: what a new user meets first works, or says in a sentence why it does not.

Method: engines in a network namespace that holds nothing but a loopback, and TCP to the addresses
of their wire; the tools as root, as an ordinary user, and where there is no sudo.

    test_firstday.py ROCADED
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROCADED = os.path.abspath(sys.argv[1])
TOOLS = pathlib.Path(__file__).resolve().parents[2] / 'usertools'
ROCADE = TOOLS / 'rocade'
USER = 64323
EAL = ['--', '--file-prefix', f'rcdday{os.getpid()}', '--no-huge', '-m', '256']
AS_USER = ['setpriv', f'--reuid={USER}', f'--regid={USER}', '--clear-groups', '--inh-caps=-all']

TCP = """
import socket, sys
for here in sys.argv[1:]:
    family = socket.AF_INET6 if ':' in here else socket.AF_INET
    with socket.socket(family) as server, socket.socket(family) as client:
        server.bind((here, 0))
        server.listen()
        client.settimeout(180)
        client.connect(server.getsockname())
        peer, _ = server.accept()
        client.send(b'exchange')
        assert peer.recv(99) == b'exchange'
"""


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')


class Place:
    """A network namespace with a loopback, and a folder for an engine."""

    def __enter__(self):
        need_root()
        self.holder = subprocess.Popen(['unshare', '-n', 'sh', '-c',
                                        'ip link set lo up && echo up && exec sleep 600'],
                                       stdout=subprocess.PIPE, text=True)
        if self.holder.stdout.readline() != 'up\n':
            raise tap.Skip('no network namespaces here')
        self.folder = tempfile.mkdtemp(prefix='rcdday')
        self.env = {**os.environ, 'ROCADE_ROCADED': ROCADED,
                    'ROCADE_SOCKET': f'{self.folder}/run/rocade.sock'}
        return self

    def __exit__(self, *_):
        self.holder.kill()
        self.holder.wait()
        self.holder.stdout.close()
        shutil.rmtree(self.folder)

    def run(self, *command):
        return subprocess.run(['nsenter', '-n', '-t', str(self.holder.pid), *map(str, command)],
                              capture_output=True, text=True, env=self.env, timeout=tap.PATIENCE,
                              check=False)

    def rocade(self, *words, status=0):
        done = self.run(ROCADE, '--log', f'{self.folder}/run/log', *words)
        tap.equal(done.returncode, status, f'{words}: {done.stdout}{done.stderr}')
        return done.stdout + done.stderr

    def pid(self):
        return json.loads(self.rocade('-j', 'engine'))['pid']

    def addresses(self):
        found = json.loads(self.run('ip', '-j', 'addr').stdout)
        return {addr['local'] for link in found for addr in link['addr_info']} - \
            {'127.0.0.1', '::1'}

    def netdevs(self):
        return {link['ifname'] for link in json.loads(self.run('ip', '-j', 'link').stdout)} - {'lo'}

    def tcp(self, *addresses):
        done = self.run(sys.executable, '-c', TCP, *addresses)
        tap.equal(done.returncode, 0, done.stderr)


WIRE = {'10.77.0.1', '10.77.0.2', 'fd77::1', 'fd77::2'}


def tcp_to_a_wire():
    with Place() as place:
        before = place.netdevs()
        out = place.rocade('up', *EAL)
        try:
            tap.true('10.77.0.2' in out, out)
            tap.equal(place.addresses(), WIRE, 'addresses')
            place.tcp(*WIRE)
            place.rocade('addr', 'add', '10.78.0.1/24', 'dev', 'roce0')
            place.rocade('link', 'add', 'x0', 'type', 'wire', 'peer', 'x1')
            place.rocade('addr', 'add', '10.79.0.1/24', 'dev', 'x1')
            tap.equal(place.addresses(), WIRE | {'10.78.0.1', '10.79.0.1'}, 'addresses')
            place.tcp('10.78.0.1', '10.79.0.1')
            place.rocade('addr', 'del', '10.78.0.1', 'dev', 'roce0')
            place.rocade('link', 'del', 'x0')
            tap.equal(place.addresses(), WIRE, 'addresses')
        finally:
            place.rocade('down')
        tap.equal((place.netdevs(), place.addresses()), (before, set()), 'what is left')


tap.add('item 10 TCP to addresses of a wire stays here', tcp_to_a_wire)


def engine_that_crashes():
    with Place() as place:
        before = place.netdevs()
        place.rocade('up', '-o', f'user={USER}', *EAL)
        tap.equal(place.addresses(), WIRE, 'addresses')
        pid = place.pid()
        os.kill(pid, signal.SIGKILL)
        tap.wait_until('the addresses to go', lambda: not place.addresses())
        tap.equal(place.netdevs(), before, 'what is left')
        shutil.rmtree(f'/var/run/dpdk/{EAL[2]}', ignore_errors=True)


tap.add('item 10 they vanish with an engine that is killed', engine_that_crashes)


def without_tun():
    with Place() as place:
        hide = 'mount --bind /dev/null /dev/net/tun && exec "$@"'
        done = place.run('unshare', '-m', 'sh', '-c', hide, 'sh', ROCADE, '--log',
                         f'{place.folder}/run/log', 'up', *EAL)
        if 'mount:' in done.stderr:
            raise tap.Skip('no mount namespaces here')
        tap.equal(done.returncode, 0, done.stderr)
        tap.true(' on lo' in done.stdout, done.stdout)
        place.tcp(*WIRE)
        links = json.loads(place.run('ip', '-j', 'addr').stdout)
        for addr in (addr for link in links for addr in link['addr_info']):
            if addr['local'] in WIRE:
                # An engine that dies does not leave them for ever.
                tap.true(addr['valid_life_time'] <= 60, addr)
        place.rocade('down')
        tap.equal(place.addresses(), set(), 'what is left')


tap.add('item 10 without TUN they are on lo, for a time', without_tun)


def not_wanted():
    with Place() as place:
        place.rocade('up', '--no-kernel-addresses', *EAL)
        tap.equal(place.addresses(), set(), 'addresses')
        place.rocade('down')
        config = pathlib.Path(place.folder) / 'rocade.conf'
        config.write_text('[engine]\nkernel_addresses = no\n[device a]\ntype = wire\npeer = b\n'
                          'address = 10.5.0.1/24\n[device b]\ntype = wire\npeer = a\n')
        place.rocade('up', '--config', config, *EAL)
        tap.equal(place.addresses(), set(), 'addresses')
        place.rocade('down')


tap.add('item 10 the kernel gets none when that is not wanted', not_wanted)


def as_user(*command, env=None):
    need_root()
    return subprocess.run([*AS_USER, *map(str, command)], capture_output=True, text=True,
                          timeout=tap.PATIENCE, check=False, cwd='/',
                          env={'PATH': os.environ['PATH'], **(env or {})})


def one_sentence(done, *words):
    """A failure that is told, and no trace."""
    text = done.stdout + done.stderr
    tap.true(done.returncode != 0 and 'Traceback' not in text, text)
    tap.true(len(done.stderr.strip().splitlines()) == 1, text)
    for word in words:
        tap.true(word in text, text)


def user_up():
    env = {'ROCADE_ROCADED': ROCADED}
    one_sentence(as_user(sys.executable, ROCADE, 'up', *EAL, env=env), '/run/rocade', 'root')
    one_sentence(as_user(sys.executable, ROCADE, '--socket', '/root/x/s', 'up', *EAL, env=env))
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        log = f'{folder}/log'
        one_sentence(as_user(sys.executable, ROCADE, '--socket', f'{folder}/s', '--log', log, 'up',
                             env=env), 'root')


tap.add('item 10 up by an ordinary user says what it takes', user_up)


def user_engine():
    """In a place of the user's own it goes, and says what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        need_root()
        os.chown(folder, USER, USER)
        env = {'ROCADE_ROCADED': ROCADED, 'XDG_RUNTIME_DIR': folder,
               'ROCADE_SOCKET': f'{folder}/rocade.sock'}
        rocade = [sys.executable, ROCADE, '--log', f'{folder}/log']
        done = as_user(*rocade, 'up', *EAL, env=env)
        tap.equal(done.returncode, 0, done.stdout + done.stderr)
        one = done.stderr.strip()
        tap.true('not known to the kernel' in one and '\n' not in one, done.stderr)
        tap.equal(as_user(*rocade, 'link', env=env).returncode, 0, 'link')
        done = as_user(*rocade, 'down', env=env)
        tap.equal(done.returncode, 0, done.stderr)


tap.add('item 10 an ordinary user has an engine in a place of his own', user_engine)


def every_command():
    with Place() as place:
        place.rocade('up', '-o', 'socket_mode=0666', *EAL)
        os.chmod(place.folder, 0o755)
        commands = (['link'], ['link', 'add', 'n', 'type', 'port', 'net_null0'], ['addr', 'show'],
                    ['dev'], ['resource'], ['resource', 'show', 'qp'], ['statistic'], ['engine'],
                    ['down'])
        places = {place.env['ROCADE_SOCKET']: 'not allowed', '/nowhere/s': 'no engine answers'}
        try:
            for socket, word in places.items():
                for command in commands:
                    one_sentence(as_user(sys.executable, ROCADE, '--socket', socket, *command),
                                 word)
            for socket in places:
                done = as_user(sys.executable, ROCADE, '--socket', socket, 'doctor')
                tap.true('Traceback' not in done.stderr, done.stderr)
            one_sentence(as_user(sys.executable, ROCADE, '--socket', '/nowhere/s', 'run', '--',
                                 'true'), 'no engine answers')
            os.chmod(place.env['ROCADE_SOCKET'], 0o600)
            one_sentence(as_user(sys.executable, ROCADE, '--socket', place.env['ROCADE_SOCKET'],
                                 'link'), 'not allowed to use')
        finally:
            place.rocade('down')


tap.add('item 10 no command of an ordinary user ends in a trace', every_command)


NEEDED = ('bash', 'sh', 'id', 'dirname', 'readlink', 'mktemp', 'rm', 'cat', 'grep', 'env')


def scripts(folder, user, *command, sudo=False):
    """Run a script where no package is installed. Returns it, and what ran with which rights."""
    where = pathlib.Path(folder)
    if not (where / 'bin').exists():
        (where / 'bin').mkdir()
        for name in NEEDED:
            os.symlink(shutil.which(name), where / 'bin' / name)
        for name, text in (('apt-get', f'echo "$(id -u) apt-get $1" >>{folder}/log'),
                           ('dpkg-query', 'exit 1')):
            (where / 'bin' / name).write_text(f'#!/bin/sh\n{text}\n')
            (where / 'bin' / name).chmod(0o755)
        os.chmod(folder, 0o777)
    if sudo:
        (where / 'bin/sudo').write_text(f'#!/bin/sh\necho "sudo" >>{folder}/log\nexec "$@"\n')
        (where / 'bin/sudo').chmod(0o755)
    (where / 'log').unlink(missing_ok=True)
    who = [shutil.which('setpriv'), *AS_USER[1:]] if user else []
    done = subprocess.run([*who, '/bin/bash', *map(str, command)], capture_output=True, text=True,
                          env={'PATH': f'{folder}/bin'}, timeout=tap.PATIENCE, check=False, cwd='/')
    log = (where / 'log').read_text() if (where / 'log').exists() else ''
    return done, log.split('\n')[:-1]


def rights_of_scripts():
    need_root()
    with tempfile.TemporaryDirectory() as folder:
        done, log = scripts(folder, False, TOOLS / 'rocade-setup.sh', 'build')
        tap.equal((done.returncode, log), (0, ['0 apt-get update', '0 apt-get install']),
                  'root without sudo: ' + done.stderr)
        for name in ('rocade-setup.sh', 'rocade-quickstart.sh', 'rocade-test.sh'):
            words = ['build'] if 'setup' in name else []
            done, log = scripts(folder, True, TOOLS / name, *words)
            one_sentence(done, 'sudo nor doas')
            tap.equal(log, [], name)
        done, log = scripts(folder, True, TOOLS / 'rocade-setup.sh', 'build', sudo=True)
        tap.equal((done.returncode, log), (0, ['sudo', f'{USER} apt-get update', 'sudo',
                                               f'{USER} apt-get install']), done.stderr)


tap.add('item 10 scripts fetch rights where they need them', rights_of_scripts)


if __name__ == '__main__':
    sys.exit(tap.run())
