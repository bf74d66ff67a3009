# SPDX-License-Identifier: BSD-3-Clause
"""Where an engine has its socket and its log, if nobody says so: an ordinary user's own one in
$XDG_RUNTIME_DIR, that of all users in /run. The libraries look in the same order
(lib/client/rcd_cl_place.h)."""
import os
import pathlib
import socket

from rocade_engine import SOCKET, Failure, Own, is_ours

NAME, LOG = 'rocade.sock', 'rocaded.log'
# What a socket's name may have, with its end.
SOCKET_NAME_BYTES = 108


def runtime_dir():
    """The folder that the system made for this user, if it is theirs alone. None: there is none."""
    path = pathlib.Path(os.environ.get('XDG_RUNTIME_DIR') or f'/run/user/{os.geteuid()}')
    return path if path.is_absolute() and private(path, 0o022) else None


def private(path, mask):
    """Whether a folder is this user's, with none of the rights in mask for others."""
    try:
        about = path.stat()
    except OSError:
        return False
    return path.is_dir() and about.st_uid == os.geteuid() and not about.st_mode & mask


def own():
    """The place of the user's own engine. None: there is none."""
    above = runtime_dir()
    path = above / 'rocade' if above else None
    return path if path and private(path, 0o077) else None


def listens(path):
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as sock:
            sock.settimeout(5)
            sock.connect(path)
            return not isinstance(path, Own) or is_ours(sock)
    except OSError:
        return False


def everybodys():
    """The place of an engine for all users, if this one may start it there. None: they may not."""
    folder = pathlib.Path(SOCKET).parent
    there = folder if folder.exists() else folder.parent
    return folder if os.access(there, os.W_OK | os.X_OK) else None


def make_own():
    """The place of the user's own engine, made if it is not there."""
    above = runtime_dir()
    if above is None:
        raise Failure(f'{SOCKET} can not be made by this user, and there is no folder for an '
                      'engine of their own: set XDG_RUNTIME_DIR to one that only they can write '
                      'to, run as root, or name places: rocade --socket PATH --log PATH up')
    path = above / 'rocade'
    path.mkdir(mode=0o700, exist_ok=True)
    if not private(path, 0o077):
        raise Failure(f'{path} is not this user\'s alone: chmod 700, or remove it')
    if len(os.fsencode(path / NAME)) >= SOCKET_NAME_BYTES:
        path.rmdir()
        raise Failure(f'{path / NAME} is too long for the name of a socket: rocade --socket PATH')
    return path


def tidy(eal, path):
    """EAL leaves the folder above its own; it goes with the last engine of the user's place, or of
    the folder in which an engine had its socket."""
    above = runtime_dir()
    places = [above] if above else []
    if eal.parent in [place / 'dpdk' for place in [*places, socket_folder(path)]]:
        try:
            eal.parent.rmdir()
        except OSError:
            pass


def socket_folder(path):
    return pathlib.Path(path).absolute().parent


def find_socket():
    """Of the engine that commands talk to."""
    named = os.environ.get('ROCADE_SOCKET')
    if named:
        return named
    folder = own()
    path = Own(folder / NAME) if folder else ''
    return path if path and listens(path) else SOCKET


def settle(args):
    """The socket and the log of a command that may name neither."""
    named = args.socket or os.environ.get('ROCADE_SOCKET')
    args.named = bool(named)
    if args.name == 'up' and everybodys() is None:
        # EAL would take root of a user namespace for one who may write to /run.
        where = socket_folder(named) if named else make_own().parent
        args.environment = {'RUNTIME_DIRECTORY': str(where)}
        args.socket = named or Own(where / 'rocade' / NAME)
    elif args.name == 'up':
        args.socket = named or SOCKET
    else:
        args.socket = named or find_socket()
    path = pathlib.Path(args.socket)
    args.log_named = bool(args.log)
    args.log = args.log or str(path.with_name(LOG if path.name == NAME else f'{path.name}.log'))
