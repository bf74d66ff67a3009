# SPDX-License-Identifier: BSD-3-Clause
"""The grammar of rocade's commands, and what may come next in a command line that is being typed,
for the completion of shells.

But for the grammar, nothing here is a list of options or words: those of rocade are read from its
parser, those of the other programs from what they answer to --help and to a value that can't be,
and links, devices and counters from the running engine.

An answer is a word, or says what the shell is to complete by itself: ":files", or ":command N", a
command line of another program that begins with word N.
"""
import os
import re
import shlex
import shutil
import subprocess

import rocade_netns
import rocade_node
import rocade_place

# What follows a command, in words; of those in capitals each stands for something: a LINK of the
# engine, a DEV of the kernel. Help, complaints, the manual page and completion are made from it.
GRAMMAR = {
    'link': ('show [LINK]',
             'add NAME type wire peer NAME [KEY VALUE]...',
             'add NAME type netdev|udp [netdev] DEV [KEY VALUE]...',
             'add NAME type port [devargs] DEVARGS [KEY VALUE]...',
             'del LINK',
             'set LINK up|down',
             'set LINK SETTING VALUE [SETTING VALUE]...'),
    'addr': ('show [LINK]',
             'add ADDRESS/LENGTH dev LINK [vlan ID]',
             'del ADDRESS dev LINK'),
    'dev': ('show [DEVICE]',
            'show netns NETNS'),
    'resource': ('show',
                 'show pd|cq|qp|mr|srq|ctx|cm_id [link LINK]',
                 'show quota'),
    'statistic': ('show [link LINK] [COUNTER...]',),
    'node': ('show [NIC...]',
             'prepare [NIC...]',
             'bind NIC...',
             'unbind NIC...'),
    'run': ('[--sockets] [--engine [netdev:NAME|udp:NAME]] -- COMMAND [ARGUMENT...]',),
}

# Keys of a link, with what each may be, and those that can be set while it is there: what
# lib/port/rcd_link_key.def has, which a test compares.
LINK_KEYS = {
    'type': 'wire|netdev|udp|port', 'peer': 'NAME', 'netdev': 'DEV', 'netns': 'NAME|PATH|PID',
    'devargs': 'DEVARGS',
    'mode': 'auto|xdp|packet|udp', 'kernel': 'NAME', 'address': 'ADDRESS/LENGTH[@VLAN], ...',
    'gateway': 'ADDRESS', 'gateway4': 'ADDRESS|none', 'gateway6': 'ADDRESS|none', 'mac': 'MAC',
    'mtu': 'BYTES', 'pause': 'keep|off|rx|tx|both', 'impair': 'ARGS', 'raw': 'off|on|sniff',
    'cc': 'auto|none|swift|dcqcn[,NAME=NUMBER...]', 'cc_class': 'none|DSCP:ALGORITHM,...',
    'sl_dscp': 'none|SL:DSCP,...', 'tos': '0..255', 'sack': 'auto|cm|off',
    'state': 'up|down',
}
LINK_SETTINGS = ('gateway', 'gateway4', 'gateway6', 'mtu', 'pause', 'impair', 'raw', 'cc',
                 'cc_class', 'sl_dscp', 'tos', 'sack', 'state')
# Elements of the grammar that stand for a key: there is no other word.
KEYS = {'KEY': tuple(LINK_KEYS), 'SETTING': LINK_SETTINGS}
# The key that says what each type is attached to.
LINK_TARGETS = {'wire': 'peer', 'netdev': 'netdev', 'udp': 'netdev', 'port': 'devargs'}

# In help, what an option wants: names of files, or keys of the daemon's configuration.
FILES = ('FILE', 'PATH', 'FOLDER')
KEY = 'KEY=VALUE'
SAFE = re.compile(r'(:files|:command [0-9]+|[A-Za-z0-9_.,/=@%+-][A-Za-z0-9_.,:/=@%+-]*)')
PATIENCE = 10   # seconds: a machine may be busy


def grammar(command):
    return ' | '.join(f'{command} {line}' for line in GRAMMAR[command])


def split(line):
    """The words; the last is the one being typed, and may be empty."""
    try:
        words = shlex.split(line)
    except ValueError:
        words = line.split()
    if not line or line[-1].isspace():
        words.append('')
    return words


class Again(list):
    """What may come any number of times."""


def elements(pattern):
    """A line of the grammar as a list; what is optional is a list in it."""
    stack = [[]]
    for token in re.findall(r'[][]|[^][ ]+', pattern):
        if token == '[':
            stack.append([])
        elif token == ']':
            group = stack.pop()
            stack[-1].append(group)
        elif token == '...':
            stack[-1][-1] = Again(stack[-1][-1])
        else:
            stack[-1].append(token)
    return stack[0]


def is_name(element):
    return element[0].isupper()


def follow(pattern, words):
    """The elements of a pattern that may come behind these words."""
    if not pattern:
        return set()
    head, rest = pattern[0], pattern[1:]
    if isinstance(head, list):
        more = [head] if isinstance(head, Again) else []
        return follow(list(head) + more + rest, words) | follow(rest, words)
    element = head.removesuffix('...')
    if not words:
        return {element}
    if not is_name(element) and words[0] not in element.split('|'):
        return set()
    if element in KEYS and words[0] not in KEYS[element]:
        return set()
    again = follow(pattern, words[1:]) if element != head else set()
    return again | follow(rest, words[1:])


class Rocade:
    """The command line of rocade itself."""

    def __init__(self, api, words):
        self.api = api
        self.parser = api.make_parser()
        self.words = words
        self.socket = rocade_place.find_socket()

    def ask(self, op):
        """A listing of the engine; without one it is empty."""
        try:
            return self.api.Engine(self.socket, PATIENCE).ask(op)
        except (self.api.Failure, OSError, ValueError):
            return []

    def names(self, element):
        """The words that stand for an element of the grammar."""
        if element == 'LINK':
            return [link['ifname'] for link in self.ask('link')]
        if element == 'DEVICE':
            return [device['ifname'] for device in self.ask('dev')]
        if element == 'COUNTER':
            links = self.ask('statistic')
            return list(dict.fromkeys(name for link in links for name in link['counters']))
        if element == 'DEV':
            return os.listdir('/sys/class/net')
        if element == 'NETNS':
            return rocade_netns.known()
        if element == 'NIC':
            return [nic['nic'] for nic in rocade_node.Node().nics()]
        if element == 'KEY':
            return [key for key in LINK_KEYS
                    if key != 'type' and key not in LINK_TARGETS.values()]
        if element == 'SETTING':
            return list(LINK_SETTINGS)
        if element == 'VALUE':
            if self.words[-2] == 'netns':
                return rocade_netns.known()
            form = LINK_KEYS.get(self.words[-2], '')
            return [word for word in form.split('|') if word.islower()]
        return [] if is_name(element) else element.split('|')

    def daemon(self):
        try:
            return self.api.find_program('rocaded')
        except self.api.Failure:
            return None

    def answers(self):
        """All that may come; the shell keeps what begins as the last word does."""
        parser, at, command = self.parser, 1, None
        positional = []
        while at < len(self.words) - 1:
            word = self.words[at]
            at += 1
            if command == 'run':
                break
            action = parser._option_string_actions.get(word)
            if action is not None and action.nargs != 0:
                if at == len(self.words) - 1:
                    return values(action.metavar, self.words[-1], self.daemon())
                if action.dest == 'socket':
                    self.socket = self.words[at]
                at += 1
            elif action is None and command is None and not word.startswith('-'):
                command = word
                choices = self.api.commands_of(self.parser).choices
                if word not in choices:
                    return []
                parser = choices[word]
            elif action is None:
                positional.append(word)
        if command == 'run':
            first = next((i for i, word in enumerate(self.words) if word == 'run'), 0) + 1
            last = len(self.words) - 1
            begin = ['--', '--engine']
            if self.words[first] == '--sockets' and first < last:
                first += 1
            else:
                begin.append('--sockets')
            if self.words[first] in ('--', '--engine') and '--' in self.words[first:last]:
                return [f':command {self.words.index("--", first) + 1}']
            if self.words[first] == '--engine' and first < last:
                return ['--', 'netdev:', 'udp:']
            return [f':command {first}'] + (begin if first == last else [])
        if self.words[-1].startswith('-'):
            return list(parser._option_string_actions)
        if command is None:
            return list(self.api.listed_commands(self.parser))
        found = set()
        for pattern in self.api.GRAMMAR.get(command, ()):
            found |= follow(elements(pattern), positional)
        return [name for element in found for name in self.names(element)]


def said(program, *words):
    """All that a program prints for some words; of ours, none of which starts anything."""
    try:
        done = subprocess.run([program, *words], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE, check=False)
    except (OSError, subprocess.SubprocessError):
        return ''
    return done.stdout + done.stderr


def keys(typed, daemon):
    """KEY= of the daemon's configuration, or KEY=VALUE where there is a list of values."""
    if daemon is None:
        return []
    key, equals, _ = typed.partition('=')
    if not equals:
        listed = re.search(r'there are (.*)', said(daemon, '-o', '?=?', '--check-config'))
        return [f'{name}=' for name in listed[1].split()] if listed else []
    listed = re.search(r'one of (.*)', said(daemon, '-o', f'{key}=?', '--check-config'))
    return [f'{key}={value}' for value in listed[1].split(', ')] if listed else []


def values(argument, typed, daemon):
    if argument in FILES:
        return [':files']
    return keys(typed, daemon) if argument == KEY else []


def program_answers(program, words):
    """Of rocaded, rocade-bench and rocade-dump. EAL's own options come before the "--"."""
    described = re.findall(r'^  (?:(-\w), |    )--([\w-]+)(?: (\S+))?', said(program, '--help'),
                           re.M)
    options = {}
    for letter, name, argument in described:
        options[f'--{name}'] = argument
        if letter:
            options[letter] = argument
    before = words[words.index('--') + 1 if '--' in words else 1:-1]
    last, typed = (before or [''])[-1], words[-1]
    name = os.path.basename(program)
    if '--' not in words[:-1] and name == 'rocade-bench':
        return ['--', '--help', '--version']
    if options.get(last):
        argument = options[last]
        if argument in FILES or argument == KEY:
            return values(argument, typed, program)
        # What can't be is refused with what can; should it be taken, help ends it.
        listed = re.search(r'known are (.*)', said(program, '--', last, '?', '--help'))
        return listed[1].split() if listed else []
    if name == 'rocade-dump' and not typed.startswith('-'):
        return [':files']
    return sorted(options) + (['--'] if '--' not in words[:-1] and name == 'rocaded' else [])


def answers(line, api):
    """
    What may come next.

    @param api  the command rocade, as a module
    """
    words = split(line)
    name = os.path.basename(words[0])
    if name == 'rocade':
        found = Rocade(api, words).answers()
    else:
        typed = os.path.expanduser(words[0])
        program = typed if '/' in typed else shutil.which(typed)
        if program is None or name not in ('rocaded', 'rocade-bench', 'rocade-dump'):
            return []
        found = program_answers(program, words)
    # Shells evaluate what they are told, and some of it is what an engine calls its links.
    return [answer for answer in found if SAFE.fullmatch(answer) and
            (answer.startswith(':') or answer.startswith(words[-1]))]
