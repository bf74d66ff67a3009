# SPDX-License-Identifier: BSD-3-Clause
"""What an engine did between two looks at it, as tables: links, lcores, clients, queue pairs. No
terminal, and no clock but that of the looks."""
import collections
import os
import pwd
import time

from rocade_engine import printable

# Numbers of messages are 32 bits wide; one that seems to go back has begun again.
WRAP = 1 << 32

Sample = collections.namedtuple('Sample', 'at engine links statistic quota qps')

# key of a row, heading, and how a value is shown: text, number, rate, share
Column = collections.namedtuple('Column', 'key head form')

COLUMNS = {
    'links': [
        Column('link', 'LINK', 'text'), Column('state', 'STATE', 'text'),
        Column('type', 'TYPE', 'text'), Column('peer', 'PEER', 'text'),
        Column('in_packets', 'IN pkt/s', 'rate'), Column('out_packets', 'OUT pkt/s', 'rate'),
        Column('in_gbits', 'IN Gb/s', 'gbits'), Column('out_gbits', 'OUT Gb/s', 'gbits'),
        Column('drops', 'DROPS/s', 'rate'), Column('again', 'AGAIN/s', 'rate')],
    'lcores': [
        Column('lcore', 'LCORE', 'number'), Column('busy', 'BUSY', 'share'),
        Column('polls', 'POLLS/s', 'rate'), Column('contexts', 'CONTEXTS', 'number'),
        Column('longest', 'LONGEST', 'number'), Column('node', 'NODE', 'number')],
    'clients': [
        Column('pid', 'PID', 'number'), Column('user', 'USER', 'text'),
        Column('program', 'PROGRAM', 'text'), Column('queue_pairs', 'QPS', 'number'),
        Column('in_messages', 'IN msg/s', 'rate'), Column('out_messages', 'OUT msg/s', 'rate'),
        Column('in_bytes', 'IN B/s', 'rate'), Column('out_bytes', 'OUT B/s', 'rate'),
        Column('quota', 'QUOTA', 'share'), Column('quota_of', 'OF', 'text')],
    'queue pairs': [
        Column('qpn', 'QPN', 'number'), Column('type', 'TYPE', 'text'),
        Column('state', 'STATE', 'text'), Column('link', 'LINK', 'text'),
        Column('pid', 'PID', 'number'), Column('program', 'PROGRAM', 'text'),
        Column('in_messages', 'IN msg/s', 'rate'), Column('out_messages', 'OUT msg/s', 'rate'),
        Column('in_bytes', 'IN B/s', 'rate'), Column('out_bytes', 'OUT B/s', 'rate'),
        Column('peer', 'PEER', 'text')],
}


def take(engine):
    """A look at an engine. When it was: between question and answer, and nobody knows better."""
    begin = time.monotonic()
    answers = [engine.ask('engine'), engine.ask('link'), engine.ask('statistic'),
               engine.ask('resource', kind='quota'), engine.ask('resource', kind='qp')]
    return Sample((begin + time.monotonic()) / 2, *answers)


def user_name(uid):
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def grown(after, before, wrap=None):
    """What a counter grew by. One that is new, or began again, counts from nothing."""
    if before is None:
        return 0
    if wrap is not None:
        step = (after - before) % wrap
        return step if step < wrap // 2 else 0
    return max(after - before, 0)


def links(before, after, seconds):
    old = {(entry['ifindex'], entry['ifname']): entry['counters'] for entry in before.statistic}
    new = {(entry['ifindex'], entry['ifname']): entry['counters'] for entry in after.statistic}
    rows = []
    for link in after.links:
        key = link['ifindex'], link['ifname']
        counters, past = new.get(key, {}), old.get(key, {})

        def rate(name):
            return grown(counters.get(name, 0), past.get(name)) / seconds
        rows.append({
            'link': link['ifname'], 'state': link['state'], 'type': link['type'],
            'peer': link.get('netdev') or link.get('peer', ''),
            'in_packets': rate('rx_packets'), 'out_packets': rate('tx_packets'),
            'in_gbits': rate('rx_bytes') * 8 / 1e9, 'out_gbits': rate('tx_bytes') * 8 / 1e9,
            'drops': sum(rate(name) for name in counters
                         if name.startswith(('rx_drop_', 'tx_drop_'))),
            'again': rate('retransmitted_pkts')})
    return rows


def lcores(before, after, seconds):
    old = {entry['lcore']: entry for entry in before.engine['lcores']}
    rows = []
    for entry in after.engine['lcores']:
        past = old.get(entry['lcore'], {})
        polls = grown(entry['polls'], past.get('polls'))
        busy = grown(entry['busy_polls'], past.get('busy_polls'))
        rows.append({
            'lcore': entry['lcore'], 'busy': min(busy / polls, 1) if polls else 0,
            'polls': polls / seconds, 'contexts': entry['contexts'],
            'longest': entry['longest_poll_work'], 'node': entry['numa_node']})
    return rows


def queue_pairs(before, after, seconds):
    old = {(entry['ctxn'], entry['lqpn']): entry for entry in before.qps}
    rows = []
    for entry in after.qps:
        past = old.get((entry['ctxn'], entry['lqpn']), {})

        def rate(name, wrap=None):
            return grown(entry[name], past.get(name), wrap) / seconds
        peer = ''
        if 'rqpn' in entry:
            peer = f'{entry["dgid"].removeprefix("::ffff:")} qp {entry["rqpn"]}'
        rows.append({
            'qpn': entry['lqpn'], 'type': entry['type'], 'state': entry['state'],
            'link': entry['ifname'], 'peer': peer, 'pid': entry['pid'],
            'program': printable(entry['comm']), 'ctxn': entry['ctxn'],
            'in_messages': rate('rx_messages', WRAP), 'out_messages': rate('tx_messages', WRAP),
            'in_bytes': rate('rx_bytes'), 'out_bytes': rate('tx_bytes')})
    return rows


def fullest(quota):
    """Of what a client has most, measured by its limit: (share, name)."""
    shares = [(use['used'] / use['limit'], name) for name, use in quota.items()
              if use['limit'] and use['used']]
    return max(shares, default=(0, ''))


def clients(after, qps):
    sums = collections.defaultdict(collections.Counter)
    for row in qps:
        for key in ('in_messages', 'out_messages', 'in_bytes', 'out_bytes'):
            sums[row['ctxn']][key] += row[key]
        sums[row['ctxn']]['queue_pairs'] += 1
    rows = []
    for entry in after.quota:
        # Who looks is no news.
        if entry['of'] != 'client' or entry['pid'] == os.getpid():
            continue
        share, name = fullest(entry['quota'])
        total = sums[entry['ctxn']]
        rows.append({
            'pid': entry['pid'], 'user': user_name(entry['uid']),
            'program': printable(entry['comm']), 'quota': share, 'quota_of': name,
            **{key: total[key] for key in ('queue_pairs', 'in_messages', 'out_messages',
                                           'in_bytes', 'out_bytes')}})
    return rows


def between(before, after):
    """All tables: {name: [row]}, in the order of COLUMNS."""
    seconds = max(after.at - before.at, 1e-3)
    qps = queue_pairs(before, after, seconds)
    return {'links': links(before, after, seconds), 'lcores': lcores(before, after, seconds),
            'clients': clients(after, qps), 'queue pairs': qps}


def scaled(value):
    """At most five characters: 999, 9.99k, 99.9M."""
    if value < 999.5:
        return f'{value:.0f}' if value >= 99.95 or value == int(value) else f'{value:.1f}'
    for unit in 'kMGT':
        value /= 1000
        if value < 999.5:
            break
    return (f'{value:.2f}' if value < 9.995 else f'{value:.1f}' if value < 99.95
            else f'{value:.0f}') + unit


def cell(row, column):
    value = row[column.key]
    if column.form == 'rate':
        return scaled(value)
    if column.form == 'gbits':
        return f'{value:.3f}'
    if column.form == 'share':
        # A little is not nothing.
        return f'{value:.1%}' if 0 < value < 0.0995 else f'{value:.0%}'
    return printable(str(value))


def select(name, rows, sort=None, reverse=False, text=''):
    """Rows in the order of a column, the largest first; of clients and their queue pairs those that
    show a text somewhere."""
    columns = COLUMNS[name]
    if text and name in ('clients', 'queue pairs'):
        rows = [row for row in rows
                if text.lower() in ' '.join(cell(row, column) for column in columns).lower()]
    column = next((column for column in columns if column.key == sort), None)
    if column is not None:
        rows = sorted(rows, key=lambda row: row[column.key],
                      reverse=(column.form != 'text') != reverse)
    return rows


def lines(name, rows):
    """A heading and a line for each row, aligned."""
    columns = COLUMNS[name]
    table = [[column.head for column in columns]]
    table += [[cell(row, column) for column in columns] for row in rows]
    # Room for what a rate may be a moment later: nothing moves to and fro.
    widths = [max(len(line[at]) for line in table) for at in range(len(columns))]
    widths = [max(width, 6) if column.form != 'text' else width
              for width, column in zip(widths, columns)]
    return ['  '.join(f'{text:<{width}}' if column.form == 'text' else f'{text:>{width}}'
                      for text, width, column in zip(line, widths, columns)).rstrip()
            for line in table]


def idle_policy(about):
    """With what auto has come to, where that was asked for."""
    first = about.get('idle_first', about['idle'])
    return about['idle'] if first == about['idle'] else f'{about["idle"]} ({first}, then sleep)'


def summary(sample, tables):
    """One line on the whole."""
    about = sample.engine
    up = about['uptime_ns'] // 10**9
    drops = sum(row['drops'] for row in tables['links'])
    return (f'rocaded {about["version"]}, process {about["pid"]}, up '
            f'{up // 3600}:{up // 60 % 60:02}:{up % 60:02}, idle policy {idle_policy(about)}, '
            f'{len(tables["clients"])} clients, {len(tables["queue pairs"])} queue pairs, '
            f'{scaled(drops)} drops/s')
