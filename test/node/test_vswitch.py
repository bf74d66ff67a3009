#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: Rocade behind a virtual switch that speaks vhost-user, as Open vSwitch does to its guests:
programs reach each other through it.

Method: testpmd is the switch: a client of two sockets, as OVS's dpdkvhostuserclient ports are,
between which it carries what comes.

    programs - rocaded [virtio-user]==[vhost] testpmd [vhost]==[virtio-user] rocaded - programs

    test_vswitch.py ROCADED LIBIBVERBS
"""
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import (ENDS, End, ENV, FOLDER, LIMIT, ROCADED, all_gone, both,  # noqa: E402
                  counters, leash, pair, rocade_on, shutil, tap)

BARE = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
ALONE = ['--no-huge', '-m', '512', '--no-telemetry']
NAMES = ('a', 'b')
running = {}


def begin(name, *command, **how):
    log = open(f'{FOLDER}/{name}.log', 'a', encoding='utf-8')
    running[name] = subprocess.Popen(command, env=BARE, stdout=log, stderr=log, **how)
    leash.leash(running[name].pid)


def said(name):
    return pathlib.Path(f'{FOLDER}/{name}.log').read_text(encoding='utf-8')


def end(name):
    process = running.pop(name)
    if process.stdin:
        # testpmd waits for a key.
        process.stdin.write(b'\n')
        process.stdin.close()
    else:
        process.send_signal(signal.SIGTERM)
    return process.wait(timeout=LIMIT)


def start_engine(number):
    """As a guest: its socket waits for the switch."""
    name = NAMES[number]
    config = pathlib.Path(f'{FOLDER}/{name}.conf')
    config.write_text(
        f'[engine]\nsocket = {FOLDER}/{name}.sock\n[device v0]\ntype = port\n'
        f'devargs = net_virtio_user0,path={FOLDER}/{name}.vhost,server=1,queue_size=1024,'
        f'mac=02:00:00:00:0e:0{number}\naddress = 10.4.0.{number + 1}/24\n', encoding='utf-8')
    begin(name, ROCADED, '--file-prefix', f'{name}{os.getpid()}', *ALONE, '--', '--config', config)
    ENDS.append(End('v0', {**ENV, 'ROCADE_SOCKET': f'{FOLDER}/{name}.sock'}))


def start_switch():
    ports = [words for number, name in enumerate(NAMES) for words in
             ('--vdev', f'net_vhost{number},iface={FOLDER}/{name}.vhost,client=1')]
    begin('switch', 'dpdk-testpmd', '-l', '0-1', '--file-prefix', f'switch{os.getpid()}', *ALONE,
          '--no-pci', *ports, '--', '--forward-mode=io', '--auto-start', '--total-num-mbufs=8192',
          '--max-pkt-len=9000', '--tx-offloads=0', stdin=subprocess.PIPE)


def links(state):
    for name, process in running.items():
        tap.equal(process.poll(), None, said(name))
    return all(f'link v0/1 state {state}' in rocade_on(side, 'link').stdout for side in list(ENDS))


def traffic():
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ibv_uc_pingpong', '-g', '1', '-s', '4096', '-n', '100')
    both('ibv_ud_pingpong', '-g', '1', '-n', '200')
    pair(['rping', '-s', '-a', '10.4.0.2', '-v', '-V', '-C', '100'],
         ['rping', '-c', '-a', '10.4.0.2', '-v', '-V', '-C', '100'])


@tap.test
def through_the_switch():
    if shutil.which('dpdk-testpmd') is None:
        raise tap.Skip('no dpdk-testpmd')
    for number in range(2):
        start_engine(number)
    start_switch()
    tap.wait_until('links', lambda: links('ACTIVE'))
    traffic()
    for side in ENDS:
        tap.true(counters(side)['rx_roce'] > 1000, 'packets of RoCE by the switch')


@tap.test
def ends():
    ENDS.check()
    all_gone()
    for name in list(running):
        tap.equal(end(name), 0, said(name))


sys.exit(tap.run())
