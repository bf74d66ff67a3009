#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: what is listed of clients' objects and quotas has the members that its readers know, in
their order, and says what is there.

Method: an engine with a pair of clients that transfer, each kind's entries against a table.

    test_listings.py ROCADED PAIR
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'harness'))
sys.dont_write_bytecode = True
import alone  # noqa: E402
import tap  # noqa: E402

PAIR = os.path.abspath(sys.argv[2])
MEMBERS = {
    'pd': ['ifname', 'pdn', 'pid', 'comm', 'users'],
    'cq': ['ifname', 'cqn', 'pid', 'comm', 'cqe', 'users'],
    'qp': ['ifname', 'lqpn', 'pid', 'comm', 'ctxn', 'type', 'state', 'pdn', 'sq_depth', 'rq_depth',
           'sq_done', 'sq_posted', 'rq_posted', 'rqpn', 'dgid', 'tx_messages', 'rx_messages',
           'tx_bytes', 'rx_bytes'],
    'mr': ['ifname', 'mrlen', 'pdn', 'memory', 'pid', 'comm'],
    'ctx': ['ifname', 'ctxn', 'pid', 'comm'],
}
QUOTA_MEMBERS = {
    'all': ['of', 'refusals', 'quota'],
    'uid': ['of', 'uid', 'clients', 'quota'],
    'client': ['of', 'uid', 'pid', 'comm', 'ctxn', 'quota'],
}


@tap.test
def of_each_kind():
    engine = alone.shared()
    # What congestion control has depends on how far it is: test_congestion.py.
    for name in 'roce0', 'roce1':
        engine.rocade('link', 'set', name, 'cc', 'none')
    with subprocess.Popen([PAIR, engine.socket, 'roce0', engine.socket, 'roce1', '4', '1000000'],
                          stdout=subprocess.DEVNULL) as pair:
        try:
            tap.wait_until('no queue pairs in RTS', lambda: [
                entry['state'] for entry in engine.ask('resource', 'show', 'qp')] == ['RTS'] * 2)
            for kind, members in MEMBERS.items():
                entries = engine.ask('resource', 'show', kind)
                tap.equal({entry['ifname'] for entry in entries}, {'roce0', 'roce1'}, kind)
                for entry in entries:
                    tap.equal(list(entry), members, kind)
                    tap.equal((entry['pid'], entry['comm']), (pair.pid, 'pair'), kind)
            for kind in ('srq', 'cm_id'):
                tap.equal(engine.ask('resource', 'show', kind), [], kind)
            quotas = engine.ask('resource', 'show', 'quota')
        finally:
            pair.kill()
    tap.equal({one['of'] for one in quotas}, set(QUOTA_MEMBERS), 'whose quotas')
    for one in quotas:
        tap.equal(list(one), QUOTA_MEMBERS[one['of']], one['of'])
        for name, use in one['quota'].items():
            tap.equal(list(use), ['used', 'limit'], f'{one["of"]} {name}')
    tap.equal([one['quota']['qps']['used'] for one in quotas if one['of'] != 'client'],
              [2, 2], 'queue pairs')


if __name__ == '__main__':
    sys.exit(tap.run())
