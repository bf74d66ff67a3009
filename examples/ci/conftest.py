# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures for pytest: two adapters that are joined, and queue pairs on them.

    rocade run --engine -- pytest

pyverbs lives in pytest's own process, and gets its libraries when that starts: so the engine is of
the whole run. Each program that a test starts by own_engine has another one.
"""
import os
import shutil
import subprocess

import pytest
from pyverbs.addr import AHAttr, GlobalRoute
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import (IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_MTU_1024,
                           IBV_QPT_RC, IBV_WC_SUCCESS)
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE

IPV4 = 1  # index of the GID that has a device's IPv4 address
ROCADE = os.environ.get('ROCADE') or shutil.which('rocade')


@pytest.fixture(scope='session')
def devices():
    """roce0 and roce1, open."""
    if 'ROCADE_SOCKET' not in os.environ:
        pytest.skip('no engine: rocade run --engine -- pytest')
    with Context(name='roce0') as first, Context(name='roce1') as second:
        yield first, second


class End:
    """One of two reliable connections' ends, with memory."""

    def __init__(self, context, size):
        rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
        self.context, self.size = context, size
        self.pd = PD(context)
        self.cq = CQ(context, 16)
        self.mr = MR(self.pd, size, rights)
        self.qp = QP(self.pd, QPInitAttr(qp_type=IBV_QPT_RC, scq=self.cq, rcq=self.cq,
                                         cap=QPCap(max_send_wr=8, max_recv_wr=8)))

    def connect(self, peer):
        route = GlobalRoute(dgid=peer.context.query_gid(1, IPV4), sgid_index=IPV4)
        attr = QPAttr(port_num=1)
        attr.dest_qp_num, attr.path_mtu = peer.qp.qp_num, IBV_MTU_1024
        attr.qp_access_flags = IBV_ACCESS_REMOTE_WRITE
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        attr.timeout, attr.retry_cnt, attr.rnr_retry, attr.min_rnr_timer = 14, 7, 7, 1
        self.qp.to_rts(attr)

    def sge(self, length):
        return [SGE(self.mr.buf, length, self.mr.lkey)]

    def completion(self):
        """The next one, which must be a success."""
        while True:
            count, completions = self.cq.poll()
            if count:
                assert completions[0].status == IBV_WC_SUCCESS
                return completions[0]

    def close(self):
        for each in (self.qp, self.mr, self.cq, self.pd):
            each.close()


@pytest.fixture
def pair(devices):
    """Two ends, connected."""
    ends = [End(context, 4096) for context in devices]
    for end, peer in zip(ends, reversed(ends)):
        end.connect(peer)
    yield ends
    for end in ends:
        end.close()


@pytest.fixture
def own_engine():
    """Runs a program with an engine of its own, and returns how it ended."""
    if ROCADE is None:
        pytest.skip('rocade is not on PATH')

    def run(*command):
        return subprocess.run([ROCADE, 'run', '--engine', '--', *command], capture_output=True,
                              text=True, timeout=120, check=False)
    return run
