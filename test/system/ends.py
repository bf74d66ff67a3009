# SPDX-License-Identifier: BSD-3-Clause
"""Engines and ends for the system tests: an unmodified program runs as server on one end and as
client on the other. A test's first two arguments are rocaded and the drop-in libibverbs."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402

ROCADED, LIBRARY = map(os.path.abspath, sys.argv[1:3])
ROCADE = pathlib.Path(__file__).parents[2] / 'usertools/rocade'
FOLDER = tempfile.mkdtemp(prefix='rcdsys')
SOCKET = f'{FOLDER}/run/rocade.sock'
ENV = {**os.environ, 'ROCADE_ROCADED': ROCADED, 'ROCADE_SOCKET': SOCKET,
       'LD_LIBRARY_PATH': str(pathlib.Path(LIBRARY).parent)}
LIMIT = 60


def rocade(*words):
    return subprocess.run([ROCADE, '--log', f'{FOLDER}/run/rocaded.log', *words],
                          capture_output=True, text=True, env=ENV, timeout=LIMIT, check=False)


def run(*command, env=None):
    if shutil.which(command[0]) is None:
        raise tap.Skip(f'no {command[0]} here')
    return subprocess.run(command, capture_output=True, text=True, env=env or ENV, timeout=LIMIT,
                          check=False)


class End:
    """Where a program runs: a device of an engine, perhaps in a namespace."""

    def __init__(self, device, env=None, namespace=None, address='127.0.0.1'):
        self.device, self.env, self.address = device, env or ENV, address
        self.prefix = ['ip', 'netns', 'exec', namespace] if namespace else []


WIRE = (End('roce0'), End('roce1'))


def both(program, *options, ends=WIRE):
    """Server on one end, client on the other. Returns what both printed."""
    if shutil.which(program) is None:
        raise tap.Skip(f'no {program} here')
    server, client = ends
    command = ['timeout', str(LIMIT), program, '-d']
    first = subprocess.Popen([*server.prefix, *command, server.device, *options], env=server.env,
                             text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        for _ in range(50):
            second = run(*client.prefix, *command, client.device, *options, server.address,
                         env=client.env)
            text = second.stdout + second.stderr
            if not re.search("Couldn't connect|Connection refused|Failed to connect", text):
                break
            time.sleep(0.1)
        out, _ = first.communicate(timeout=LIMIT)
    finally:
        first.kill()
        first.wait()
    what = f'{program} {" ".join(options)}: server {first.returncode}, client ' \
           f'{second.returncode}\n{out}{text}'
    tap.equal((first.returncode, second.returncode), (0, 0), what)
    return out + text


def perftest(program, *options, ends=WIRE):
    return both(program, '-x', '1', '-F', *options, ends=ends)


def start(*words):
    """An engine with the embedded wire; words for `rocade up` come before EAL's."""
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    done = rocade('up', *words, '--', '--file-prefix', f'rcdsys{os.getpid()}', '--no-huge', '-m',
                  '256')
    tap.equal(done.returncode, 0, done.stdout + done.stderr)


def stop():
    """Nothing is left of any program; the engine ends."""
    out = rocade('resource').stdout
    tap.true(all(f' {kind} 0' in line for line in out.splitlines()
                 for kind in ('pd', 'cq', 'qp', 'mr', 'ctx')), out)
    done = rocade('down')
    tap.equal(done.returncode, 0, done.stderr)


def veth_ends(stack, mtu=1500, more=''):
    """Two namespaces joined by a veth pair, an engine in each, with more lines for its device."""
    if os.geteuid() != 0:
        raise tap.Skip('needs root')
    ends = []
    spaces = [f'rcdsys{os.getpid()}{letter}' for letter in 'ab']
    for space in spaces:
        if run('ip', 'netns', 'add', space).returncode:
            raise tap.Skip('no network namespaces here')
        stack.callback(run, 'ip', 'netns', 'del', space)
        if run('ip', 'netns', 'exec', space, 'true').returncode:
            raise tap.Skip('no program can enter a network namespace here')
    run('ip', 'link', 'add', 'va', 'netns', spaces[0], 'type', 'veth', 'peer', 'name', 'vb',
        'netns', spaces[1])
    for number, (space, dev) in enumerate(zip(spaces, ('va', 'vb')), 1):
        run('ip', '-n', space, 'link', 'set', 'lo', 'up')
        run('ip', '-n', space, 'link', 'set', dev, 'mtu', str(mtu), 'up')
        run('ip', '-n', space, 'addr', 'add', f'192.168.1.{number}/24', 'dev', dev)
        run('ip', '-n', space, 'addr', 'add', f'fd01::{number}/64', 'dev', dev, 'nodad')
    for number, (space, dev) in enumerate(zip(spaces, ('va', 'vb')), 1):
        socket = f'{FOLDER}/{space}.sock'
        config = pathlib.Path(FOLDER) / f'{space}.conf'
        config.write_text(f'[engine]\nsocket = {socket}\n[device rxe_{dev}]\ntype = netdev\n'
                          f'netdev = {dev}\n{more}')
        env = {**ENV, 'ROCADE_SOCKET': socket}
        command = ['ip', 'netns', 'exec', space, ROCADED, '--file-prefix', space, '--no-huge',
                   '-m', '256', '--no-telemetry', '--', '--config', str(config)]
        bare = {key: val for key, val in ENV.items() if key != 'LD_LIBRARY_PATH'}
        engine = subprocess.Popen(command, env=bare, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL)
        stack.callback(engine.wait)
        stack.callback(engine.terminate)
        for _ in range(200):
            if run(str(ROCADE), 'engine', env=env).returncode == 0:
                break
            time.sleep(0.05)
        ends.append(End(f'rxe_{dev}', env, space, f'192.168.1.{number}'))
    return ends
