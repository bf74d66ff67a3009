#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: programs talk by devices that another program feeds from ports of its own, whose other
traffic stays its own.

Method: feeder.c has two such devices and the link between them; unmodified programs of the
distribution use them, once with nothing lost and once with 1 % of all packets.

    test_fed.py FEEDER LIBIBVERBS
"""
import json
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'system'))
from ends import (ENDS, End, ENV, FOLDER, LIMIT, all_gone, both, leash, pair,  # noqa: E402
                  rocade_on, tap)

FEEDER = os.path.abspath(sys.argv[1])
SOCKET = f'{FOLDER}/fed.sock'
feeders = []


def feed(loss):
    bare = {key: val for key, val in os.environ.items() if key != 'LD_LIBRARY_PATH'}
    feeder = subprocess.Popen([FEEDER, SOCKET, str(loss)], env=bare, stdout=subprocess.PIPE,
                              text=True)
    leash.leash(feeder.pid)
    feeders.append(feeder)
    ENDS.clear()
    ENDS.extend(End(name, {**ENV, 'ROCADE_SOCKET': SOCKET}) for name in ('fed0', 'fed1'))
    tap.wait_until('the engine in the program', lambda: feeder.poll() is not None or
                   rocade_on(ENDS[0], 'link').stdout.count('ACTIVE') == 2)


def ends_well(lost):
    all_gone()
    feeder = feeders.pop()
    feeder.send_signal(signal.SIGTERM)
    out, _ = feeder.communicate(timeout=LIMIT)
    tap.equal(feeder.returncode, 0, out)
    said = json.loads(out)
    tap.true(said['carried'] > 5000 and said['others'] > 5000, out)
    tap.equal((said['wrong'], said['lost'] > 0), (0, lost), out)


def pings(address):
    """WRITEs and READs, all data compared."""
    pair(['rping', '-s', '-a', address, '-v', '-V', '-C', '200', '-S', '4000'],
         ['rping', '-c', '-a', address, '-v', '-V', '-C', '200', '-S', '4000'])


@tap.test
def begins():
    feed(0)


@tap.test
def nothing_lost():
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '500', '-c')
    both('ibv_uc_pingpong', '-g', '2', '-n', '500')
    both('ibv_ud_pingpong', '-g', '1', '-n', '500')
    both('ib_atomic_lat', '-x', '1', '-F', '-n', '200')
    for address in ('10.8.0.2', 'fd08::2'):
        pings(address)


@tap.test
def left_to_the_program():
    ends_well(False)


@tap.test
def one_in_a_hundred_lost():
    feed(100)
    both('ibv_rc_pingpong', '-g', '1', '-s', '65536', '-n', '200', '-c')
    both('ib_read_bw', '-x', '2', '-F', '-s', '65536', '-n', '200')
    pings('10.8.0.2')


@tap.test
def and_nothing_else():
    ends_well(True)


sys.exit(tap.run())
