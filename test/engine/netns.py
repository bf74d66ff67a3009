# SPDX-License-Identifier: BSD-3-Clause
"""Engines in network namespaces, for tests of links: ROCADED and PAIR are the test's arguments."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import confine  # noqa: E402
import ending  # noqa: E402
import leash  # noqa: E402
import tap  # noqa: E402
import veth  # noqa: E402

ROCADED, PAIR = sys.argv[1:3]
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
NAME = f'rcd{os.getpid()}'


def load(path):
    """A command of ours as a module."""
    sys.dont_write_bytecode = True
    sys.path.append(str(path.parent))
    loader = importlib.machinery.SourceFileLoader(path.name, str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(path.name, loader))
    loader.exec_module(module)
    return module


command_line = load(ROCADE)


def rocade(*words):
    """What the command line says, and its status. Most of the time that a test of links takes would
    be that of programs in Python that begin; test_cli.py runs the command as one."""
    said = io.StringIO()
    args, sys.argv = sys.argv, [str(ROCADE), *words]
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = command_line.main()
    except SystemExit as end:
        status = end.code
    finally:
        sys.argv = args
    return said.getvalue(), status


def run(*command, check=True, given=''):
    done = subprocess.run(command, capture_output=True, text=True, check=False, input=given)
    if check and done.returncode:
        raise AssertionError(f'{" ".join(command)}: {done.stdout}{done.stderr}')
    return done.stdout


def in_csum_errors(space):
    """Datagrams with a wrong sum that the kernel of a namespace dropped."""
    names, values = [line.split() for line in run(
        'ip', 'netns', 'exec', space, 'cat', '/proc/net/snmp').splitlines()
        if line.startswith('Udp:')]
    return int(values[names.index('InCsumErrors')])


class Engine:
    """A rocaded with a configuration, perhaps in a namespace."""

    def __init__(self, folder, name, config, namespace=None, program=ROCADED, eal=()):
        self.socket = f'{folder}/{name}.sock'
        self.log = pathlib.Path(folder) / f'{name}.log'
        path = pathlib.Path(folder) / f'{name}.cfg'
        path.write_text(f'[engine]\nsocket = {self.socket}\n{confine.LINES}{config}')
        command = ['ip', 'netns', 'exec', namespace] if namespace else []
        command += [program, '--file-prefix', f'{NAME}{name}', '--no-huge', '-m', '384',
                    '--no-telemetry', *eal, '--', '--config', str(path)]
        with open(self.log, 'w', encoding='utf-8') as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=out)
        leash.leash(self.process.pid)
        deadline = time.monotonic() + tap.PATIENCE
        # A command takes longer to begin than an engine to make its socket.
        while not (os.path.exists(self.socket) or self.process.poll() is not None or
                   time.monotonic() > deadline):
            time.sleep(0.01)
        while self.process.poll() is None and time.monotonic() < deadline:
            if rocade('--socket', self.socket, 'engine')[1] == 0:
                break
            time.sleep(0.05)

    def up(self):
        return self.process.poll() is None

    def admin(self, *words):
        said, status = rocade('--socket', self.socket, *words)
        if status:
            raise AssertionError(f'rocade {" ".join(words)}: {said}')
        return said

    def stop(self):
        lives = self.up()
        status = ending.end(self.process, self.log)
        # That of a sanitizer that found something, perhaps.
        if lives and status:
            said = self.log.read_text() if self.log.exists() else ''
            raise AssertionError(f'an engine ended with {status}: {said}')
        return status


def stop_all(engines):
    """All of them, when one does not end well, too: the next test uses their names."""
    with contextlib.ExitStack() as stack:
        for engine in engines:
            stack.callback(engine.stop)


def pair(a, dev_a, b, dev_b, *more):
    done = subprocess.run([PAIR, a.socket, dev_a, b.socket, dev_b, *more], capture_output=True,
                          text=True, timeout=tap.PATIENCE + 60, check=False)
    tap.equal(done.returncode, 0, done.stdout + done.stderr + a.log.read_text() +
              b.log.read_text())


def at_once(space):
    """A kernel looks for seconds whether another has the link-local address of a new netdev,
    and asks for no neighbour before: not where there are two."""
    run('ip', 'netns', 'exec', space, 'sh', '-c',
        'echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad', check=False)


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip('needs root')


class Veth:
    """Two namespaces joined by a veth pair."""

    def __init__(self, mtu):
        need_root()
        self.a, self.b = NAME + 'a', NAME + 'b'
        if subprocess.run(['ip', 'netns', 'add', self.a], capture_output=True,
                          check=False).returncode:
            raise tap.Skip('no network namespaces here')
        run('ip', 'netns', 'add', self.b)
        if subprocess.run(['ip', 'netns', 'exec', self.a, 'true'], capture_output=True,
                          check=False).returncode:
            self.close()
            raise tap.Skip('no program can enter a network namespace here')
        for space in (self.a, self.b):
            at_once(space)
        run('ip', 'link', 'add', 'va', 'netns', self.a, 'type', 'veth', 'peer', 'name', 'vb',
            'netns', self.b)
        for number, (space, dev) in enumerate(((self.a, 'va'), (self.b, 'vb')), 1):
            run('ip', '-n', space, 'link', 'set', 'lo', 'up')
            run('ip', '-n', space, 'link', 'set', dev, 'mtu', str(mtu), 'up')
            run('ip', '-n', space, 'addr', 'add', f'192.168.1.{number}/24', 'dev', dev)
            run('ip', '-n', space, 'addr', 'add', f'fd01::{number}/64', 'dev', dev, 'nodad')
        for space, dev in ((self.a, 'va'), (self.b, 'vb')):
            veth.wait(space, dev)

    def close(self):
        for space in (self.a, self.b):
            run('ip', 'netns', 'del', space, check=False)
