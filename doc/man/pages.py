#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Makes a manual page from its template: text by hand, and lists read from where they are kept.

    pages.py TEMPLATE RELEASE >PAGE

A line of the template that begins with @ is replaced:

    @title NAME SECTION         the page's first line
    @options PROGRAM            app/PROGRAM/options.def
    @commands                   what rocade's parser and grammar say; "@about COMMAND" before a text
                                of the template, "@end" behind the last, put it below that command
    @keys                       app/rocaded/conf_key.def
    @linkkeys                   lib/port/rcd_link_key.def
    @quotas                     lib/base/rcd_resource.def
    @counters                   lib/base/rcd_counter.def, its comments as headings
    @environment WHO            lib/base/rcd_env.def
"""
import argparse
import importlib.machinery
import importlib.util
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
STRING = r'"(?:\\.|[^"\\])*"'
LIMITS = dict(re.findall(r'^#define (RCD_\w+) +(\d+)$',
                         (ROOT / 'lib/base/rcd_limits.h').read_text(encoding='utf-8'), re.M))


def load_rocade():
    """The command rocade, as a module."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(ROOT / 'usertools'))
    loader = importlib.machinery.SourceFileLoader('rocade', str(ROOT / 'usertools/rocade'))
    spec = importlib.util.spec_from_loader('rocade', loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def entries(path, macro):
    """The arguments of each line MACRO(...) of a list; strings joined, NULL as None."""
    text = (ROOT / path).read_text(encoding='utf-8')
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    for inside in re.findall(rf'^{macro}\(((?:{STRING}|[^"()]|\([^()]*\))*)\)', text, re.M):
        args = re.findall(rf'\s*((?:{STRING}\s*)+|(?:[^",(]|\([^()]*\))+)(?:,|$)', inside)
        yield [value(arg.strip()) for arg in args]


def value(arg):
    arg = re.sub(r'\bRCD_\w+', lambda name: LIMITS.get(name[0], name[0]), arg)
    strings = re.findall(STRING, arg)
    if strings:
        return ''.join(text[1:-1] for text in strings).replace('\\"', '"').replace('\\\\', '\\')
    return None if arg == 'NULL' else arg


def escape(text):
    """As roff takes it: nothing at the start of a line is a request, a hyphen stays one, and a path
    gets none."""
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq')
    text = re.sub(r'(?<!\S)(?=/)', r'\\%', text)
    return '\\&' + text if text.startswith('.') else text


def item(head, *text):
    return ['.TP', head, *(escape(line) for line in text if line)]


def option(names, argument, what):
    head = ', '.join(f'\\fB{escape(name)}\\fR' for name in names)
    return item(head + (f' \\fI{escape(argument)}\\fR' if argument else ''), what)


def options(program):
    for letter, name, argument, what in entries(f'app/{program}/options.def', 'OPTION'):
        short = [f'-{letter[1]}'] if letter.startswith("'") else []
        yield from option([*short, f'--{name}'], argument, what)


def parser_options(parser):
    for action in parser._actions:
        if action.option_strings and action.help != argparse.SUPPRESS:
            argument = (action.metavar or action.dest.upper()) if action.nargs != 0 else None
            yield from option(action.option_strings, argument, action.help)


def commands(about):
    """Each command of rocade: how it is written, what it does, its options, the template's text."""
    rocade = load_rocade()
    parser = rocade.make_parser()
    yield '.SH OPTIONS'
    yield from parser_options(parser)
    yield '.SH COMMANDS'
    choices = rocade.commands_of(parser).choices
    for name, what in rocade.listed_commands(parser).items():
        yield f'.SS {escape(name)}'
        lines = rocade.GRAMMAR.get(name)
        usage = choices[name].format_usage().removeprefix('usage: ').split('\n       ')
        for line in [f'rocade {name} {line}' for line in lines or ()] or \
                [' '.join(' '.join(usage).replace('[-h]', '').split())]:
            yield from (f'.B {escape(line)}', '.br')
        yield '.PP'
        yield escape(what[0].upper() + what[1:] + '.')
        # Not that each has a help.
        yield from list(parser_options(choices[name]))[3:]
        # Paragraphs that follow are not the last option's.
        yield from (['.PP'] if about.get(name) else [])
        yield from about.pop(name, [])
    if about:
        raise SystemExit(f'pages.py: there is no command {", ".join(about)}')


def keyed(key, form, start, what):
    return item(f'\\fB{escape(key)}\\fR = \\fI{escape(form)}\\fR', what,
                f'Default: {start}.' if start else '')


def keys():
    for entry in entries('app/rocaded/conf_key.def', 'CONF_ENGINE'):
        yield from keyed(*entry)


def link_keys():
    for _, key, _, _, *entry in entries('lib/port/rcd_link_key.def', 'RCD_LINK_KEY'):
        yield from keyed(key, *entry)


def amount(text):
    """A limit of the list, as a configuration would say it."""
    shifted = re.fullmatch(r'(?:UINT64_C\()?(\d+)u?\)? << (\d+)', text)
    number = int(shifted[1]) << int(shifted[2]) if shifted else int(text)
    for letter, bits in (('T', 40), ('G', 30), ('M', 20)):
        if number and number % (1 << bits) == 0:
            return f'{number >> bits}{letter}'
    return str(number)


def quotas():
    for _, name, session, most, error, what in entries('lib/base/rcd_resource.def',
                                                       'RCD_RESOURCE'):
        own = f'Of a client: {amount(session)}'
        if session == '0':
            own = 'A client has none of its own'
        yield from item(f'\\fB{name}\\fR, \\fBuid_{name}\\fR', what[0].upper() + what[1:] + '.',
                        f'{own}; {amount(most)} is the largest.', f'Who reaches it gets {error}.')


def counters():
    text = (ROOT / 'lib/base/rcd_counter.def').read_text(encoding='utf-8').split('*/', 2)[2]
    parts = re.findall(r'/\*\s*(.*?)\s*\*/|^(RCD_COUNTER\([^\n]*\))$', text, re.M | re.S)
    for comment, line in parts:
        if comment:
            comment = ' '.join(comment.replace('*', ' ').split())
            yield from ('.PP', escape(comment))
            continue
        name, unit, what = re.match(rf'RCD_COUNTER\(\w+, (\w+), (\w+), ({STRING})\)', line).groups()
        yield from ('.TP', f'\\fB{name}\\fR (\\fI{unit}\\fR)', escape(value(what)))


def environment(who):
    for name, form, asks, what in entries('lib/base/rcd_env.def', 'RCD_ENV'):
        if who == 'all' or who in asks.split():
            yield from item(f'\\fB{name}\\fR=\\fI{escape(form)}\\fR', what)


def split_about(lines):
    """The lines without the texts below @about, and those texts by command."""
    kept, about, current = [], {}, None
    for line in lines:
        if line.startswith('@about '):
            current = line.split()[1]
            about[current] = []
        elif line == '@end':
            current = None
        elif current:
            about[current].append(line)
        else:
            kept.append(line)
    return kept, about


def page(template, release):
    lines, about = split_about(template.read_text(encoding='utf-8').splitlines())
    makers = {
        '@title': lambda name, section: [f'.TH {name} {section} "" "Rocade {release}" "Rocade"'],
        '@options': options, '@commands': lambda: commands(about),
        '@keys': keys, '@linkkeys': link_keys,
        '@quotas': quotas, '@counters': counters, '@environment': environment,
    }
    for line in lines:
        words = line.split()
        if line.startswith('@'):
            found = list(makers[words[0]](*words[1:]))
            if not found:
                raise SystemExit(f'pages.py: {template.name}: nothing for {line}')
            yield from found
        else:
            yield line


if __name__ == '__main__':
    print('\n'.join(page(pathlib.Path(sys.argv[1]), sys.argv[2])))
