#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: unmodified programs of the distribution run against the drop-in libibverbs.

Method: an engine with the embedded wire roce0 <-> roce1; each program as server on one end and as
client on the other, through `rocade run`; what they print is judged where they judge it themselves
(exit status, payload check), bandwidth and latency are not.

    test_verbs.py ROCADED LIBIBVERBS
"""
import contextlib
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


@tap.test
def no_engine_no_devices():
    done = run('ibv_devices')
    tap.equal(done.returncode, 0, done.stderr)
    tap.true('roce' not in done.stdout, done.stdout)
    done = run('ibv_devices', env={**ENV, 'ROCADE_DEBUG': '1'})
    tap.true('no engine' in done.stderr, done.stderr)


def start():
    os.makedirs(f'{FOLDER}/run', exist_ok=True)
    done = rocade('up', '--', '--file-prefix', f'rcdsys{os.getpid()}', '--no-huge', '-m', '256')
    tap.equal(done.returncode, 0, done.stdout + done.stderr)


@tap.test
def engine_starts():
    start()


@tap.test
def devices_and_their_properties():
    out = run('ibv_devices').stdout
    tap.true('roce0' in out and 'roce1' in out, out)
    out = run('ibv_devinfo', '-v', '-d', 'roce0').stdout
    for text in ('InfiniBand (0)', 'PORT_ACTIVE (4)', 'max_mtu:\t\t4096', 'active_mtu:\t\t4096',
                 'link_layer:\t\tEthernet', '0xffffff', '::ffff:10.77.0.1', 'RoCE v2',
                 'ATOMIC_HCA', 'BAD_PKEY_CNTR'):
        tap.true(text in out, f'{text} is not in\n{out}')


@tap.test
def every_byte_at_every_size():
    for size in ('1', '4096', '1048576'):
        for more in ([], ['-e']):
            both('ibv_rc_pingpong', '-g', '1', '-s', size, '-n', '50', '-c', *more)


@tap.test
def path_mtus_and_both_ips():
    for mtu in ('256', '512', '1024', '2048', '4096'):
        both('ibv_rc_pingpong', '-g', '1', '-m', mtu, '-n', '100', '-c')
    both('ibv_rc_pingpong', '-g', '2', '-n', '100', '-c')
    both('ibv_rc_pingpong', '-g', '0', '-n', '100', '-c')


@tap.test
def new_ways_to_post_and_poll():
    both('ibv_rc_pingpong', '-g', '1', '-N', '-c', '-n', '100')
    both('ibv_rc_pingpong', '-g', '1', '-t', '-c', '-n', '100')


@tap.test
def on_one_device():
    both('ibv_rc_pingpong', '-g', '1', '-c', '-n', '100', ends=(WIRE[0], WIRE[0]))


@tap.test
def what_is_not_offered_fails_cleanly():
    for option in ('-o', '-j'):
        done = run('ibv_rc_pingpong', '-d', 'roce0', '-g', '1', option, '-n', '1')
        tap.true(0 < done.returncode < 128, f'{option}: {done.returncode} {done.stderr}')


@tap.test
def other_services():
    for more in ([], ['-e']):
        both('ibv_uc_pingpong', '-g', '1', *more)
        both('ibv_ud_pingpong', '-g', '1', '-s', '2048', *more)
        both('ibv_srq_pingpong', '-g', '1', *more)


def perftest(program, *options):
    both(program, '-x', '1', '-F', *options)


@tap.test
def perftest_bandwidth():
    for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw'):
        perftest(program, '-n', '500')
    perftest('ib_send_bw', '-n', '500', '-b')
    perftest('ib_send_bw', '-n', '500', '-e')
    perftest('ib_send_bw', '-n', '500', '--use-srq')
    perftest('ib_write_bw', '-n', '100', '-q', '16')
    perftest('ib_write_bw', '-n', '50', '-a')
    perftest('ib_write_bw', '-n', '500', '-s', '8', '--inline_size', '32')


@tap.test
def perftest_latency():
    for program in ('ib_send_lat', 'ib_read_lat', 'ib_atomic_lat'):
        perftest(program, '-n', '500')
    perftest('ib_write_lat', '-n', '200')


@tap.test
def perftest_other_services():
    perftest('ib_send_bw', '-n', '500', '-c', 'UC')
    perftest('ib_write_bw', '-n', '500', '-c', 'UC')
    perftest('ib_send_lat', '-n', '500', '-c', 'UD')


@tap.test
def link_events():
    watch = subprocess.Popen(['stdbuf', '-oL', 'ibv_asyncwatch', '-d', 'roce0'], env=ENV,
                             stdout=subprocess.PIPE, text=True)
    try:
        tap.true('roce0' in watch.stdout.readline(), 'it does not begin')
        rocade('link', 'set', 'roce0', 'down')
        tap.true('PORT_ERR (10)' in watch.stdout.readline(), 'no event for down')
        rocade('link', 'set', 'roce0', 'up')
        tap.true('PORT_ACTIVE (9)' in watch.stdout.readline(), 'no event for up')
    finally:
        watch.kill()
        watch.wait()


@tap.test
def ibstat_shows_the_ports():
    out = run('ibstat').stdout
    for text in ("CA 'roce0'", "CA 'roce1'", 'State: Active', 'Physical state: LinkUp',
                 'Rate: 2.5', 'Link layer: Ethernet'):
        tap.true(text in out, f'{text} is not in\n{out}')


@tap.test
def no_memory_error_in_the_library():
    if shutil.which('valgrind') is None or shutil.which('ibv_rc_pingpong') is None:
        raise tap.Skip('no valgrind here')
    options = ['-g', '1', '-n', '20', '-c']
    first = subprocess.Popen(['timeout', str(LIMIT), 'ibv_rc_pingpong', '-d', 'roce0', *options],
                             env=ENV, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(0.5)
    done = run('valgrind', '--leak-check=full', '--errors-for-leak-kinds=definite,indirect',
               '--error-exitcode=9', 'ibv_rc_pingpong', '-d', 'roce1', *options, '127.0.0.1')
    first.wait()
    tap.equal(done.returncode, 0, done.stdout + done.stderr)


@tap.test
def nothing_is_left():
    out = rocade('resource').stdout
    tap.true(all(f' {kind} 0' in line for line in out.splitlines()
                 for kind in ('pd', 'cq', 'qp', 'mr', 'ctx')), out)
    done = rocade('down')
    tap.equal(done.returncode, 0, done.stderr)


def veth_ends(stack):
    """Two namespaces joined by a veth pair, an engine in each."""
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
        run('ip', '-n', space, 'link', 'set', dev, 'up')
        run('ip', '-n', space, 'addr', 'add', f'192.168.1.{number}/24', 'dev', dev)
        run('ip', '-n', space, 'addr', 'add', f'fd01::{number}/64', 'dev', dev, 'nodad')
    for number, (space, dev) in enumerate(zip(spaces, ('va', 'vb')), 1):
        socket = f'{FOLDER}/{space}.sock'
        config = pathlib.Path(FOLDER) / f'{space}.conf'
        config.write_text(f'[engine]\nsocket = {socket}\n[device rxe_{dev}]\ntype = netdev\n'
                          f'netdev = {dev}\n')
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


@tap.test
def on_veth_between_namespaces():
    with contextlib.ExitStack() as stack:
        ends = veth_ends(stack)
        for gid in ('1', '2'):
            both('ibv_rc_pingpong', '-g', gid, '-n', '200', '-c', ends=ends)
        for program in ('ibv_uc_pingpong', 'ibv_ud_pingpong', 'ibv_srq_pingpong'):
            both(program, '-g', '1', '-n', '200', '-s', '1024', ends=ends)
        for program in ('ib_send_bw', 'ib_write_bw', 'ib_read_bw', 'ib_atomic_bw', 'ib_send_lat'):
            both(program, '-x', '1', '-F', '-n', '200', ends=ends)


if __name__ == '__main__':
    sys.exit(tap.run())
