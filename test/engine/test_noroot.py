#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: an ordinary user without any right has an engine in their own folder, which programs and
commands find by themselves; nobody else's is in its way, and nothing is left of it.

Method: commands of a user that no account has, with no capability, in folders that they own or not.

    test_noroot.py ROCADED LIBIBVERBS
"""
import json
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import nobody  # noqa: E402
import tap  # noqa: E402

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).resolve().parents[2] / 'usertools/rocade'
PYTHON = '/usr/bin/python3'
EAL = ('--', '--no-huge', '-m', '256', '--file-prefix', f'rcdnoroot{os.getpid()}')
PINGPONG = nobody.pingpong(18620)


class Home(nobody.Home):
    """With commands of rocade."""

    def __init__(self):
        super().__init__(64327, {'PATH': '/usr/bin:/bin:/usr/sbin:/sbin', 'ROCADE_ROCADED': ROCADED,
                                 'ROCADE_BUILD_DIR': str(pathlib.Path(LIBRARY).parents[1])},
                         [ROCADED, LIBRARY, ROCADE, PYTHON])

    def rocade(self, *words, status=0, **more):
        done = self.run(PYTHON, ROCADE, *words, **more)
        out = done.stdout + done.stderr
        tap.equal((done.returncode, 'Traceback' in out), (status, False), f'{words}: {out}')
        return out

    def up(self):
        out = self.rocade('up', *EAL)
        self.keep(out)
        return out

    def left(self):
        return sorted(str(path.relative_to(self.runtime)) for path in self.runtime.rglob('*'))


@tap.test
def without_any_right():
    with Home() as home:
        caps = home.run('grep', '^Cap', '/proc/self/status').stdout.split()[1::2]
        tap.equal({int(cap, 16) for cap in caps}, {0}, 'capabilities')
        out = home.up()
        try:
            tap.true(f'log {home.runtime}/rocade/rocaded.log' in out, out)
            tap.equal((home.runtime / 'rocade').stat().st_mode & 0o777, 0o700, 'mode')
            pid = home.rocade('engine').split('process ')[1].split(',')[0]
            engine = pathlib.Path('/proc', pid)
            lines = (engine / 'status').read_text().splitlines()
            tap.equal({int(line.split()[1], 16) for line in lines if line.startswith('Cap')}, {0},
                      'capabilities of the engine')
            tap.true('roce0' in home.rocade('link'), 'links')
            # Programs that are told nothing of an engine, and those of "rocade run".
            path = {'LD_LIBRARY_PATH': str(pathlib.Path(LIBRARY).parent)}
            for done in (home.run('sh', '-c', PINGPONG, 'roce1', **path),
                         home.run(PYTHON, ROCADE, 'run', '--', 'sh', '-c', PINGPONG, 'roce1')):
                tap.equal((done.returncode, done.stdout.count('1000 iters')), (0, 2),
                          done.stdout + done.stderr)
            home.rocade('link', 'add', 'n', 'type', 'udp', 'lo')
            home.rocade('link', 'del', 'n')
            tap.true('already' in home.rocade('up', *EAL, status=1), 'a second one')
        finally:
            home.rocade('down')
        tap.equal(home.left(), [], 'what is left')
        # Whoever inherits it may take its time to bury it.
        tap.true(not (engine / 'exe').exists(), 'the engine is still there')


@tap.test
def where_it_is_looked_for():
    """The order: what is named, the user's own one, that of all."""
    with Home() as home, tempfile.TemporaryDirectory() as place:
        os.chown(place, home.user, home.user)
        named = f'{place}/named.sock'
        tap.true('/run/rocade/rocade.sock' in home.rocade('link', status=1, ROCADE_SOCKET='')
                 or os.path.exists('/run/rocade/rocade.sock'), 'without one')
        home.up()
        try:
            tap.true(named in home.rocade('link', status=1, ROCADE_SOCKET=named), 'a named one')
            tap.true(named in home.rocade('--socket', named, 'link', status=1), 'a named one')
            tap.true('roce0' in home.rocade('link', ROCADE_SOCKET=''), 'an empty name')
            # Whoever's it would be: another user's folder is not looked into, nor a loose one.
            for change in (lambda: os.chown(home.runtime, 0, 0), lambda: home.runtime.chmod(0o777),
                           lambda: (home.runtime / 'rocade').chmod(0o755)):
                change()
                tap.true(str(home.runtime) not in home.run(PYTHON, ROCADE, 'link').stderr, 'looked')
                tap.true('roce0' not in home.run(PYTHON, ROCADE, 'link').stdout, 'found')
                os.chown(home.runtime, home.user, home.user)
                home.runtime.chmod(0o700)
                (home.runtime / 'rocade').chmod(0o700)
        finally:
            home.rocade('down')


@tap.test
def where_it_can_not_be():
    with Home() as home:
        for folder, what in (('/nowhere', 'XDG_RUNTIME_DIR'), ('run', 'XDG_RUNTIME_DIR'),
                             ('', 'XDG_RUNTIME_DIR'), ('/root', 'XDG_RUNTIME_DIR')):
            out = home.rocade('up', *EAL, status=1, XDG_RUNTIME_DIR=folder)
            tap.true(what in out and len(out.splitlines()) == 1, out)
        deep = home.runtime / ('x' * 90)
        tap.equal(home.run('mkdir', '-m', '700', deep).returncode, 0, 'mkdir')
        tap.true('too long' in home.rocade('up', *EAL, status=1, XDG_RUNTIME_DIR=str(deep)), 'long')
        tap.equal(home.left(), [deep.name], 'what is left')
        (home.runtime / 'rocade').mkdir(mode=0o700)
        tap.true('alone' in home.rocade('up', *EAL, status=1), 'of root')
        os.chown(home.runtime / 'rocade', home.user, home.user)
        (home.runtime / 'rocade').chmod(0o750)
        tap.true('alone' in home.rocade('up', *EAL, status=1), 'readable')


THREADED = '''
import subprocess, sys, threading
from pyverbs.device import Context
from pyverbs.mr import MR
from pyverbs.pd import PD
threading.Thread(target=threading.Event().wait, daemon=True).start()
with Context(name='roce0') as context, PD(context) as pd, MR(pd, 1 << 20, 1) as mr:
    subprocess.run([*sys.argv[1:], '-j', 'resource', 'show', 'mr'], check=True)
'''


def memories(home, how):
    out = home.rocade('run', '--', PYTHON, '-c', THREADED, PYTHON, ROCADE, ROCADE_MR=how)
    return [region['memory'] for region in json.loads(out)]


@tap.test
def memory_of_a_program_with_threads():
    """It is shared, too, though nobody may stop its writers by userfaultfd."""
    with Home() as home:
        if home.run(PYTHON, '-c', 'import pyverbs').returncode:
            raise tap.Skip('no python3-pyverbs')
        home.up()
        try:
            for kind, how in (('shared', 'auto'), ('copied', 'copy')):
                # Where a thread stalls for longer than it is waited for, memory is copied.
                tap.wait_until(f'memory that is {kind}', lambda: memories(home, how) == [kind], 60)
        finally:
            home.rocade('down')


@tap.test
def root_of_a_namespace():
    """Root there is nobody here: its engine is where its own folder is."""
    with Home() as home:
        if home.run('unshare', '-Urn', 'true').returncode:
            raise tap.Skip('no namespaces for an ordinary user')
        script = 'set -e; "$0" up -- --no-huge -m 256; "$0" link; "$0" down'
        done = home.run('unshare', '-Urn', 'sh', '-c', script, ROCADE)
        tap.equal((done.returncode, 'roce0' in done.stdout), (0, True), done.stdout + done.stderr)
        tap.true(str(home.runtime) in done.stdout, done.stdout)
        tap.equal(home.left(), [], 'what is left')
        # In a folder of theirs, which has all that is made then.
        place = home.folder / 'place'
        for words in (f'--socket {place}/a.sock --log {place}/log', f'--socket {place}/a.sock'):
            script = (f'set -e; "$0" {words} up -- --no-huge -m 256; ls -R {home.folder}; '
                      f'"$0" {words} link; "$0" {words} down')
            done = home.run('unshare', '-Urn', 'sh', '-c', script, ROCADE)
            tap.equal((done.returncode, 'roce0' in done.stdout), (0, True),
                      done.stdout + done.stderr)
            tap.true(f'{place}/dpdk' in done.stdout, done.stdout)
            tap.equal((home.left(), place.exists()), ([], False), 'what is left')
        # In the folder of others, who keep it.
        home.run('mkdir', place, status=0)
        home.run('touch', place / 'theirs', status=0)
        done = home.run('unshare', '-Urn', 'sh', '-c', script, ROCADE, status=0)
        tap.true(f'log {place}/a.sock.log' in done.stdout, done.stdout)
        tap.equal([path.name for path in place.iterdir()], ['theirs'], 'what is left')
        out = home.run('unshare', '-Urn', PYTHON, ROCADE, 'run', '--engine', '--', 'ibv_devices')
        tap.true('roce1' in out.stdout, out.stdout + out.stderr)
        tap.equal(home.left(), [], 'what is left')


@tap.test
def an_engine_of_a_command():
    """Its folder is in the user's own, if that is theirs alone."""
    with Home() as home:
        asks = ('run', '--engine', '--', 'sh', '-c', 'echo $ROCADE_SOCKET')
        tap.true(home.rocade(*asks).startswith(f'{home.runtime}/'), 'their own')
        home.runtime.chmod(0o777)
        tap.true(str(home.runtime) not in home.rocade(*asks), 'one that others may write to')
        home.runtime.chmod(0o700)
        # What keeps it from being configured is told at once: nobody waits for an engine.
        begun = time.monotonic()
        done = home.run('sh', '-c', f'ulimit -f 0; exec {PYTHON} {ROCADE} run --engine udp:lo -- :')
        tap.true(done.returncode == 1 and time.monotonic() - begun < 100, done.stderr)
        tap.true('Traceback' not in done.stderr and 'File too large' in done.stderr, done.stderr)
        tap.equal(home.left(), [], 'what is left')


@tap.test
def after_a_kill():
    """A socket without an engine is in nobody's way, and the next engine takes its place."""
    with Home() as home:
        out = home.up()
        pid = out.split('process ')[1].split(',')[0]
        home.run('kill', '-9', pid)
        tap.wait_until('its end', lambda: not pathlib.Path(f'/proc/{pid}/exe').exists())
        tap.true((home.runtime / 'rocade/rocade.sock').exists(), 'what it left')
        tap.true(str(home.runtime) not in home.run(PYTHON, ROCADE, 'link').stderr, 'looked for')
        home.up()
        tap.true('roce0' in home.rocade('link'), 'links')
        home.rocade('down')
        tap.equal(home.left(), [], 'what is left')


if __name__ == '__main__':
    sys.exit(tap.run())
