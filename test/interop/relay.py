#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One TCP connection on this host's port, given to a command as its standard input and output.

    relay.py listen|connect PORT COMMAND...
"""
import socket
import subprocess
import sys
import time


def main():
    how, port, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    if how == 'listen':
        with socket.create_server(('127.0.0.1', port)) as server:
            connection, _ = server.accept()
    else:
        deadline = time.monotonic() + 180
        while True:
            try:
                connection = socket.create_connection(('127.0.0.1', port))
                break
            except OSError:
                if time.monotonic() > deadline:
                    return 1
                time.sleep(0.05)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return subprocess.run(command, stdin=connection, stdout=connection, check=False).returncode


if __name__ == '__main__':
    sys.exit(main())
