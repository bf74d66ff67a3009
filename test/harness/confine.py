# SPDX-License-Identifier: BSD-3-Clause
"""Engines of few rights: what the tests named confined_... start.

ROCADED_CONFINED in the environment names a user that engines become; then no system call but those
expected, too. Standard library only.
"""
import os

_USER = os.environ.get('ROCADED_CONFINED')
_KEYS = {'user': _USER, 'seccomp': 'kill'} if _USER else {}

# As options of rocaded, "rocade up" and rocade-compare.sh, and as lines of [engine].
OPTIONS = [word for key, value in _KEYS.items() for word in ('-o', f'{key}={value}')]
LINES = ''.join(f'{key} = {value}\n' for key, value in _KEYS.items())
