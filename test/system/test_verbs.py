#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goal: unmodified programs of the distribution run against the drop-in libibverbs.

Method: each program as server on one end and as client on the other; what they print is judged
where they judge it themselves (exit status, payload check), bandwidth and latency are not.

    test_verbs.py ROCADED LIBIBVERBS [veth]
"""
import shutil
import subprocess
import sys

from ends import (ENDS, ENV, LIMIT, VETH, await_port, both, on, rocade_on, run, start, stop,
                  tap)


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
    for number, end in enumerate(ENDS, 1):
        out = on(end, 'ibv_devices').stdout
        tap.true(end.device in out, out)
        out = on(end, 'ibv_devinfo', '-v', '-d', end.device).stdout
        address = f'192.168.1.{number}' if VETH else f'10.77.0.{number}'
        for text in ('InfiniBand (0)', 'PORT_ACTIVE (4)', 'max_mtu:\t\t4096',
                     'active_mtu:\t\t4096', 'link_layer:\t\tEthernet', '0xffffff',
                     f'::ffff:{address}', 'RoCE v2', 'ATOMIC_HCA', 'SYS_IMAGE_GUID',
                     'XRC', 'MEM_WINDOW_TYPE_2B', 'max_cq_count:\t65535',
                     'maximum available device memory:\t16777216Bytes'):
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
def device_memory():
    for size in ('4', '4096', '1048576'):
        both('ibv_rc_pingpong', '-g', '1', '-j', '-s', size, '-n', '50', '-c')


@tap.test
def on_one_device():
    both('ibv_rc_pingpong', '-g', '1', '-c', '-n', '100', ends=(ENDS[0], ENDS[0]))


@tap.test
def memory_on_demand():
    for more in (['-o'], ['-O'], ['-o', '-P'], ['-O', '-P'], ['-o', '-e'], ['-o', '-m', '256'],
                 ['-o', '-s', '1'], ['-O', '-s', '1048576', '-n', '50']):
        both('ibv_rc_pingpong', '-g', '1', '-c', '-n', '100', *more)


@tap.test
def other_services():
    for more in ([], ['-e']):
        both('ibv_uc_pingpong', '-g', '1', *more)
        both('ibv_ud_pingpong', '-g', '1', '-s', '2048', *more)
        both('ibv_srq_pingpong', '-g', '1', *more)


@tap.test
def extended_reliable_connections():
    for more in ([], ['-e'], ['-m', '256', '-s', '100000'], ['-c', '1']):
        both('ibv_xsrq_pingpong', '-g', '1', *more)
    both('ibv_xsrq_pingpong', '-g', '1', ends=(ENDS[0], ENDS[0]))


def set_link(end, state):
    """Up or down, as its owner does it: the engine for its own, or the kernel for its netdev."""
    if VETH:
        run('ip', '-n', end.prefix[3], 'link', 'set', end.netdev, state)
    else:
        rocade_on(end, 'link', 'set', end.device, state)


@tap.test
def link_events():
    end = ENDS[0]
    watch = subprocess.Popen([*end.prefix, 'stdbuf', '-oL', 'ibv_asyncwatch', '-d', end.device],
                             env=end.env, stdout=subprocess.PIPE, text=True)
    try:
        tap.true(end.device in watch.stdout.readline(), 'it does not begin')
        set_link(end, 'down')
        tap.true('PORT_ERR (10)' in watch.stdout.readline(), 'no event for down')
        set_link(end, 'up')
        line = watch.stdout.readline()
        # The kernel takes addresses away and gives them back.
        while 'GID' in line:
            line = watch.stdout.readline()
        tap.true('PORT_ACTIVE (9)' in line, f'no event for up: {line}')
    finally:
        watch.kill()
        watch.wait()


@tap.test
def ibstat_shows_the_ports():
    for end in ENDS:
        out = on(end, 'ibstat').stdout
        for text in (f"CA '{end.device}'", 'State: Active', 'Physical state: LinkUp', 'Rate: 2.5',
                     'Link layer: Ethernet'):
            tap.true(text in out, f'{text} is not in\n{out}')


@tap.test
def no_memory_error_in_the_library():
    if shutil.which('valgrind') is None or shutil.which('ibv_rc_pingpong') is None:
        raise tap.Skip('no valgrind here')
    options = ['-g', '1', '-n', '20', '-c']
    server, client = ENDS
    first = subprocess.Popen([*server.prefix, 'timeout', str(LIMIT), 'ibv_rc_pingpong', '-d',
                              server.device, *options], env=server.env,
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    await_port(server)
    done = on(client, 'valgrind', '--leak-check=full',
              '--errors-for-leak-kinds=definite,indirect', '--error-exitcode=9',
              'ibv_rc_pingpong', '-d', client.device, *options, server.address)
    first.wait()
    tap.equal(done.returncode, 0, done.stdout + done.stderr)


@tap.test
def nothing_is_left():
    stop()


if __name__ == '__main__':
    sys.exit(tap.run())
