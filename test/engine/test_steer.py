#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: of a port with several queues each gets what it is for: RoCE those of the lcores, where the
context of its connection is, and the rest one of its own; with fewer queues or no flow rules all of
it goes to all, and works as well.

Method: an engine with several lcores has a port behind net_impair as a NIC with several queues
(nic_node.py), another one for each test of the same engines.

    test_steer.py ROCADED PAIR
"""
import pathlib
import subprocess
import sys
import textwrap

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
import tap  # noqa: E402
from netns import PAIR, pair, run  # noqa: E402
from nic_node import ONE, OWN, leave, on  # noqa: E402


def rules(there):
    tap.equal(there.steering(), 'flow', 'steering')
    tap.true('steering flow' in there.engine.admin('-d', 'link'), 'in words')
    tap.equal(there.traffic(), 0, 'packets for the other lcore')
    tap.true(there.counter('to_kernel') > 0, 'frames for the kernel')
    # A flood of what is no RoCE, for the kernel and for nobody.
    with subprocess.Popen(
            ['ip', 'netns', 'exec', there.b, sys.executable, '-c', textwrap.dedent(f'''
                import socket
                sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
                while True:
                    try:
                        sock.sendto(bytes(1000), ('{OWN}', 9))
                    except OSError:
                        pass
                ''')]) as flood:
        try:
            for version in ('4', '6'):
                pair(there.engine, 'r0', there.peer, 'peer', version)
        finally:
            flood.kill()
    tap.equal(there.counter('rx_handover'), 0, 'packets for the other lcore, in a flood')


def rules_of_one_lcore(there):
    tap.equal(there.steering(), 'flow', 'steering')
    there.traffic()


def rules_are_made_again(there):
    """A port that is stopped loses them."""
    for words in (('mtu', '1300'), ('mtu', '1500')):
        run('ip', '-n', there.a, 'link', 'set', 'r0k', *words)
        tap.wait_until('the MTU', lambda words=words: f' mtu {words[1]} ' in
                       there.engine.admin('-d', 'link'))
        tap.equal(there.steering(), 'flow', words)
        tap.equal(there.traffic(), 0, words)
    there.engine.admin('link', 'set', 'r0', 'impair', 'reset=1')
    tap.wait_until('the reset', lambda: 'asks for a reset' in there.log())
    tap.equal(there.traffic(), 0, 'after a reset')
    tap.equal(there.steering(), 'flow', 'after a reset')
    # It goes and comes back.
    there.engine.admin('link', 'del', 'r0')
    there.add('queues=3')
    tap.equal(there.steering(), 'flow', 'added again')
    tap.equal(there.traffic(), 0, 'added again')


def hash_of_the_driver(there):
    """Rules that may not say what is hashed: nothing is foretold, and all is handed over."""
    tap.equal(there.steering(), 'flow', 'steering')
    log = there.log()
    tap.true('what tells packets apart is left to the driver' in log, log)
    tap.true('no queue for' not in log, log)
    there.traffic()


def fewer_queues(there):
    """A reset that leaves an lcore without a queue: the device goes, with queue pairs on it."""
    with subprocess.Popen(
            ['timeout', '60', PAIR, there.engine.socket, 'r0', there.peer.socket, 'peer', '4',
             '1000000'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as busy:
        try:
            tap.wait_until('queue pairs', lambda: there.counter('rx_packets') > 1000)
            there.engine.admin('link', 'set', 'r0', 'impair', 'fewer=2,reset=1')
            tap.wait_until('the end of r0', lambda: 'r0' not in there.engine.admin('link'))
        finally:
            busy.kill()
    tap.true('does not start again' in there.log(), 'it says so')
    tap.equal(there.engine.process.poll(), None, 'the engine lives')


def no_rules(there):
    tap.equal(there.steering(), 'rss', 'steering')
    tap.equal(there.traffic(), 0, 'packets for the other lcore')


def no_rules_and_it_says_so(there):
    no_rules(there)
    tap.true('no queue for what is no RoCE' in there.log(),
             there.log())


def one_queue(there):
    tap.equal(there.steering(), 'none', 'steering')
    there.traffic()


tap.add('rules', on('queues=3', rules))
tap.add('rules_are_made_again', on('queues=3,busy=1', rules_are_made_again))
tap.add('hash_of_the_driver', on('queues=3,flow=2', hash_of_the_driver))
tap.add('no_rules', on('queues=3,flow=0', no_rules_and_it_says_so))
tap.add('too_few_queues', on('queues=2', no_rules))
tap.add('one_queue', on('seed=1', one_queue))
tap.add('fewer_queues_auto', on('queues=3', fewer_queues))
tap.add('fewer_queues_sleep', on('queues=3', fewer_queues, idle='sleep'))
tap.add('rules_of_one_lcore', on('queues=2', rules_of_one_lcore, lcores=ONE, idle='sleep'))
tap.add('the_engines_end_well', leave)

if __name__ == '__main__':
    sys.exit(tap.run())
