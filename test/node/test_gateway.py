#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: examples/memif-gateway does what it shows: programs with verbs on one side, a memif on the
other, in a tunnel as well.

Method:

  plain   programs - gateway [memif client]==[memif server] rocaded - programs
  tunnel  programs - gateway [memif server]==[memif client] gateway - programs, by VXLAN

    test_gateway.py ROCADED LIBIBVERBS GATEWAY
"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import (ENDS, End, ENV, FOLDER, LIMIT, ROCADED, all_gone, both,  # noqa: E402
                  leash, pair, rocade_on, tap)

GATEWAY = os.path.abspath(sys.argv[3])
BARE = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
EAL = ['--no-huge', '-m', '512', '--no-pci', '--no-telemetry', '-l', '0']
MACS = ('02:00:00:00:0a:01', '02:00:00:00:0a:02')
running = []


def begin(name, *command):
    log = open(f'{FOLDER}/{name}.log', 'w', encoding='utf-8')
    process = subprocess.Popen(command, env=BARE, stdout=log, stderr=log)
    leash.leash(process.pid)
    running.append((name, process))
    return process


def memif(number, role):
    """A client does not start before there is a server."""
    path = pathlib.Path(f'{FOLDER}/memif{number}.sock')
    if role == 'client':
        tap.wait_until('a server', path.exists)
    return f'net_memif0,role={role},socket={FOLDER}/memif{number}.sock,socket-abstract=no,' \
           f'bsize=8192,rsize=9,mac={MACS[role == "client"]}'


def gateway(name, port, *options):
    begin(name, GATEWAY, *EAL, '--file-prefix', f'{name}{os.getpid()}', '--vdev', port, '--',
          '--socket', f'{FOLDER}/{name}.sock', *options)
    return End('gateway0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/{name}.sock'})


def engine(name, port, address):
    config = pathlib.Path(FOLDER) / f'{name}.conf'
    config.write_text(f'[engine]\nsocket = {FOLDER}/{name}.sock\n[device m0]\ntype = port\n'
                      f'devargs = {port}\naddress = {address}\n', encoding='utf-8')
    begin(name, ROCADED, '--file-prefix', f'{name}{os.getpid()}', '--no-huge', '-m', '512',
          '--no-telemetry', '--', '--config', config)
    return End('m0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/{name}.sock'})


def ready(*ends):
    """All links are up. What runs on them is ENDS."""
    ENDS.clear()
    ENDS.extend(ends)

    def up():
        for name, process in running:
            tap.equal(process.poll(), None,
                      pathlib.Path(f'{FOLDER}/{name}.log').read_text(encoding='utf-8'))
        return all('state ACTIVE' in rocade_on(end, 'link').stdout for end in ends)
    tap.wait_until('links', up)


def end_all():
    all_gone()
    for name, process in reversed(running):
        process.send_signal(signal.SIGTERM)
        tap.equal(process.wait(timeout=LIMIT), 0, name)
    running.clear()


def traffic(server):
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ibv_ud_pingpong', '-g', '1', '-n', '200')
    pair(['rping', '-s', '-a', server, '-v', '-V', '-C', '100'],
         ['rping', '-c', '-a', server, '-v', '-V', '-C', '100'])


@tap.test
def plain():
    server = engine('server', memif(1, 'server'), '10.5.0.1/24')
    ready(gateway('client', memif(1, 'client'), '--address', '10.5.0.2/24'), server)
    traffic('10.5.0.1')
    end_all()


@tap.test
def tunnel():
    first = gateway('inner', memif(2, 'server'), '--address', '10.6.0.1/24', '--vxlan',
                    f'77,192.0.2.1,192.0.2.2,{MACS[1]}', '--mac', '02:00:00:00:0b:01')
    second = gateway('outer', memif(2, 'client'), '--address', '10.6.0.2/24', '--vxlan',
                     f'77,192.0.2.2,192.0.2.1,{MACS[0]}', '--mac', '02:00:00:00:0b:02')
    ready(second, first)
    traffic('10.6.0.1')
    end_all()


@tap.test
def what_it_refuses():
    for options in ([], ['--address', 'x'], ['--address', '10.5.0.2/24', '--vxlan', '1,2,3'],
                    ['--address', '10.5.0.2/24', 'more']):
        done = subprocess.run([GATEWAY, *EAL, '--no-shconf', '--vdev', 'net_null0', '--', *options],
                              env=BARE, capture_output=True, text=True, timeout=LIMIT, check=False)
        tap.equal((done.returncode, 'memif-gateway: ' in done.stderr), (2, True), done.stderr)


sys.exit(tap.run())
