#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: who looks at an engine sees what congestion control does, and all ways of looking agree.

Method: perftest through a bottleneck that marks (net_impair), with each algorithm. What
rocade resource shows of the queue pair while it runs is held against rocade statistic behind it,
and that against what the exporter has for Prometheus.

    test_congestion.py ROCADED LIBIBVERBS
"""
import contextlib
import json
import pathlib
import re
import sys

from ends import ENDS, FOLDER, all_gone, begin, counters, kill, rocade_on, start, stop, tap

COUNTERS = {'rx_ecn_marked': 'packets', 'tx_cnp': 'packets', 'rx_cnp': 'packets',
            'cnp_handled': 'packets', 'cc_window_limited': 'seconds',
            'cc_pacing_limited': 'seconds'}


def exported(end, name):
    """A counter as Prometheus has it."""
    text = rocade_on(end, 'exporter', '--once').stdout
    found = re.search(rf'^rocade_{name}_{COUNTERS[name]}_total{{device="{end.device}"}} (\S+)$',
                      text, re.M)
    tap.true(found, f'{name}: {text[-3000:]}')
    return float(found[1])


def shown(end):
    """The queue pair of an end that has an algorithm, or nothing."""
    pairs = json.loads(rocade_on(end, '-j', 'resource', 'show', 'qp').stdout)
    return next((one for one in pairs if one['ifname'] == end.device and 'cc' in one), {})


def choose(end, algorithm):
    done = rocade_on(end, 'link', 'set', end.device, 'cc', algorithm)
    tap.equal(done.returncode, 0, done.stderr)


@contextlib.contextmanager
def writing(receiver, sender, what, condition):
    """What runs inside finds a transfer without end, of which this has come true."""
    words = ['ib_write_bw', '-x', '1', '-F', '--run_infinitely', '-d']
    programs = [begin(receiver, *words, receiver.device)]

    def is_there():
        if len(programs) < 2 or programs[1].poll() is not None:
            # The server may not listen yet.
            programs[1:] = [begin(sender, *words, sender.device, receiver.address)]
        return condition()
    try:
        tap.wait_until(what, is_there)
        yield
    finally:
        for program in programs:
            kill(program)
    all_gone()


def begin_engine(keys, *engine):
    """With these keys of both devices and of the engine, which have no other algorithm yet."""
    config = pathlib.Path(FOLDER) / 'congestion.conf'
    config.write_text('\n'.join(('[engine]', *engine, *(
        f'[device {name}]\ntype = wire\npeer = {peer}\naddress = {address}\n{keys}\n'
        for name, peer, address in (('roce0', 'roce1', '10.77.0.1/24'),
                                    ('roce1', 'roce0', '10.77.0.2/24'))))), encoding='utf-8')
    ENDS.clear()
    start(config)


def writes(sender, receiver, condition=lambda: True):
    """Until a transfer has moved something, and that has come true."""
    before = counters(sender)['sent_bytes']
    return writing(receiver, sender, 'a transfer', lambda: counters(sender)['sent_bytes'] >
                   before + 1000000 and condition())


def limited(algorithm, *wanted):
    """Until these members of the sender's queue pair have moved. Returns them all, and what both
    ends have counted from begin to end."""
    receiver, sender = ENDS
    choose(sender, algorithm)
    before = [counters(end) for end in ENDS]
    with writing(receiver, sender, f'{algorithm}: {wanted}', lambda: all(
            shown(sender).get(name) for name in wanted)):
        last = shown(sender)

        # A rate is there only while it holds something back.
        def told():
            text = rocade_on(sender, 'resource', 'show', 'qp', '-d').stdout
            return all(re.search(rf'\b{name} \w', text) for name in ('cc', *wanted))
        tap.wait_until(f'{wanted} for people', told)
    after = [counters(end) for end in ENDS]
    return last, *({name: now[name] - then[name] for name in COUNTERS}
                   for now, then in zip(after, before))


@tap.test
def engine_starts():
    try:
        begin_engine('cc = none\nimpair = rate=100000000,queue=400000,mark=20000')
    except AssertionError as err:
        if 'no net_impair' in str(err):
            raise tap.Skip('no driver headers: usertools/rocade-driver-sdk.sh') from None
        raise


@tap.test
def by_window():
    last, receiver, sender = limited('swift', 'cc_window', 'cc_window_ns', 'cc_cnps')
    tap.equal(last['cc'], 'swift', last)
    tap.true(sender['cc_window_limited'] >= last['cc_window_ns'], (sender, last))
    tap.true(sender['cnp_handled'] >= last['cc_cnps'], (sender, last))
    # What answers has no algorithm, so that nothing marks its packets.
    tap.true(receiver['rx_ecn_marked'] >= receiver['tx_cnp'] >= sender['rx_cnp'] >=
             sender['cnp_handled'] > 0, (receiver, sender))
    tap.equal([receiver[name] for name in ('rx_cnp', 'cnp_handled', 'cc_window_limited',
                                           'cc_pacing_limited')], [0] * 4, receiver)
    tap.equal((sender['rx_ecn_marked'], sender['tx_cnp']), (0, 0), sender)


@tap.test
def by_pace():
    last, receiver, sender = limited('dcqcn,line=1000', 'cc_rate_kbps', 'cc_pacing_ns', 'cc_cnps')
    tap.equal(last['cc'], 'dcqcn', last)
    tap.true(sender['cc_pacing_limited'] >= last['cc_pacing_ns'], (sender, last))
    tap.true(receiver['tx_cnp'] >= sender['cnp_handled'] >= last['cc_cnps'], (receiver, sender))


@tap.test
def the_exporter_has_the_same():
    for end in ENDS:
        now = counters(end)
        for name, unit in COUNTERS.items():
            value = now[name] * (1e-9 if unit == 'seconds' else 1)
            tap.true(abs(exported(end, name) - value) < 1e-5, f'{name}: {now[name]}')


@tap.test
def without_an_algorithm():
    """Nothing is counted, and nothing shown."""
    receiver, sender = ENDS
    choose(sender, 'none')
    before = [counters(end) for end in ENDS]
    with writes(sender, receiver):
        tap.equal(shown(sender), {}, 'without an algorithm')
    for end, then in zip(ENDS, before):
        now = counters(end)
        tap.equal({name: now[name] - then[name] for name in COUNTERS},
                  dict.fromkeys(COUNTERS, 0), end.device)


@tap.test
def by_default():
    """A window by delay, on cores of its own and on shared ones; none is still to be had."""
    receiver, sender = ENDS
    for idle in 'poll', 'yield':
        stop()
        begin_engine('', f'idle = {idle}')
        with writes(sender, receiver):
            tap.equal(shown(sender).get('cc'), 'swift', idle)
        choose(sender, 'dcqcn')
        with writes(sender, receiver, lambda: shown(sender).get('cc') == 'dcqcn'):
            choose(sender, 'auto')
        with writes(sender, receiver, lambda: shown(sender).get('cc') == 'swift'):
            choose(sender, 'none')
        with writes(sender, receiver):
            tap.equal(shown(sender), {}, idle)


@tap.test
def nothing_is_left():
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
