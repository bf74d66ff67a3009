#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: unmodified programs of the distribution run against the drop-in libibverbs.

Method: an engine with the embedded wire roce0 <-> roce1; each program as server on one end and as
client on the other, through `rocade run`; what they print is judged where they judge it themselves
(exit status, payload check), bandwidth and latency are not.

    test_verbs.py ROCADED LIBIBVERBS
"""
import contextlib
import shutil
import subprocess
import sys
import time

from ends import ENV, LIMIT, WIRE, both, rocade, run, start, stop, tap, veth_ends


@tap.test
def no_engine_no_devices():
    done = run('ibv_devices')
    tap.equal(done.returncode, 0, done.stderr)
    tap.true('roce' not in done.stdout, done.stdout)
    done = run('ibv_devices', env={**ENV, 'ROCADE_DEBUG': '1'})
    tap.true('no engine' in done.stderr, done.stderr)


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
    stop()


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
