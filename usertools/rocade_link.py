# SPDX-License-Identifier: BSD-3-Clause
"""Words about links, as keys and values: pairs in the manner of iproute2, and shorter forms."""
from rocade_complete import LINK_KEYS, LINK_TARGETS, grammar
from rocade_engine import Failure


def pairs(words):
    """Words two by two. Which keys there are is the engine's business."""
    found = {}
    if len(words) % 2:
        raise Failure(f'{words[-1]}: a key without a value, or a value without a key')
    for key, value in zip(words[::2], words[1::2]):
        if key in found:
            raise Failure(f'{key}: said twice')
        if key in ('op', 'name'):
            raise Failure(f'{key}: no key of a link; there are {" ".join(LINK_KEYS)}')
        found[key] = value
    return found


def add(words):
    """
    What "link add" is told: NAME type KIND KEY VALUE..., where the key of what it is attached to
    may be left out, and the word "type" as well.
    """
    if len(words) < 3:
        raise Failure(grammar('link'))
    name, rest = words[0], words[1:]
    short = rest[0] in LINK_TARGETS
    if not short and rest[0] != 'type':
        return {'name': name, **pairs(rest)}
    kind, rest = (rest[0], rest[1:]) if short else (rest[1], rest[2:])
    if kind not in LINK_TARGETS:
        raise Failure(f'type: one of {", ".join(LINK_TARGETS)}')
    found = {'name': name, 'type': kind}
    if rest and (short or len(rest) % 2):
        found[LINK_TARGETS[kind]], rest = rest[0], rest[1:]
        if short and rest and rest[0] in LINK_KEYS['mode'].split('|'):
            found['mode'], rest = rest[0], rest[1:]
    more = pairs(rest)
    for key in more:
        if key in found:
            raise Failure(f'{key}: said twice')
    return {**found, **more}


def change(words):
    """What "link set" is told: NAME up|down, or NAME KEY VALUE..."""
    if len(words) == 2 and words[1] in ('up', 'down'):
        return {'name': words[0], 'state': words[1]}
    if len(words) < 2:
        raise Failure(grammar('link'))
    return {'name': words[0], **pairs(words[1:])}


def address(words):
    """What "addr add" and "addr del" are told: ADDRESS dev NAME [vlan ID], as ip has it."""
    if len(words) >= 3 and words[1] == 'dev':
        words = [words[2], words[0], *words[3:]]
    if len(words) == 4 and words[2] == 'vlan':
        words = [words[0], f'{words[1]}@{words[3]}']
    if len(words) != 2:
        raise Failure(grammar('addr'))
    return {'name': words[0], 'address': words[1]}
