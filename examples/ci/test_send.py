# SPDX-License-Identifier: BSD-3-Clause
"""What tests with the fixtures of conftest.py look like."""
from pyverbs.enums import IBV_WR_RDMA_WRITE
from pyverbs.wr import RecvWR, SendWR


def test_send(pair):
    sender, receiver = pair
    sender.mr.write('hello', 5)
    receiver.qp.post_recv(RecvWR(num_sge=1, sg=receiver.sge(4096)))
    sender.qp.post_send(SendWR(num_sge=1, sg=sender.sge(5)))
    sender.completion()
    assert receiver.completion().byte_len == 5
    assert receiver.mr.read(5, 0) == b'hello'


def test_write(pair):
    writer, target = pair
    writer.mr.write('there', 5)
    request = SendWR(num_sge=1, sg=writer.sge(5), opcode=IBV_WR_RDMA_WRITE)
    request.set_wr_rdma(target.mr.rkey, target.mr.buf)
    writer.qp.post_send(request)
    writer.completion()
    assert target.mr.read(5, 0) == b'there'


def test_program(own_engine):
    done = own_engine('ibv_devices')
    assert done.returncode == 0 and 'roce1' in done.stdout
