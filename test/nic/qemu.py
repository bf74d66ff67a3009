#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Stands before QEMU when the kit starts it, and adds what the kit has no words for: addresses of
its own for each of several guests, a slot that the NIC can be taken out of, options of the NIC, a
monitor by which a test does that, and a serial port by which the guest may ask for it.

    qemu.py QEMU FOLDER NUMBER OPTIONS WORD...

FOLDER/monitor is the monitor's socket, FOLDER/asks that of the serial port, which is the guest's
second, FOLDER/pid has QEMU's process. The first NIC is `nic0`, in slot `slot0`. Becomes QEMU.
"""
import os
import pathlib
import re
import sys

SLOT = 'pcie-root-port,id=slot0,chassis=1,slot=1,addr=0x8'


def changed(words, number, options):
    before = None
    for word in words:
        if before == '-device' and 'netdev=' in word:
            word = word.replace('mac=52:54:00:55:00:', f'mac=52:54:00:55:{number:02x}:')
            if 'netdev=n0,' in word:
                word = re.sub(r'addr=0x\w+', 'id=nic0,bus=slot0,addr=0x0', word) + options
                yield from (SLOT, '-device')
        yield word
        before = word


def main():
    program, folder, number, options = sys.argv[1:5]
    folder = pathlib.Path(folder)
    (folder / 'pid').write_text(str(os.getpid()))
    os.execv(program, [program, *changed(sys.argv[5:], int(number), options), '-qmp',
                       f'unix:{folder}/monitor,server=on,wait=off', '-serial',
                       f'unix:{folder}/asks,server=on,wait=off'])


if __name__ == '__main__':
    main()
