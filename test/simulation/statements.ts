import { int, message } from './backend-messages.js';
import { closedAt, DEALS, type Deal, dealOf, ZONES } from './world.js';

/** Type OIDs of Postgres. */
export const OID = {
  bool: 16,
  int8: 20,
  int4: 23,
  text: 25,
  float8: 701,
  timestamptz: 1184,
  void: 2278,
} as const;

export interface Column {
  readonly name: string;
  readonly oid: number;
}

export type Value = string | number | boolean | null;

/** Columns, rows and waits of a statement, once its parameters are known. */
export interface Program {
  readonly columns: readonly Column[];
  readonly parameters: number;
  rows(values: readonly string[], session: Settings): readonly (readonly Value[])[];
  readonly tag: (rows: number) => string;
  /** True if it reads a table, and so takes time. */
  readonly reads: boolean;
  /** True as long as it must wait for a lock. */
  waits?(values: readonly string[], session: Settings): boolean;
}

/** Settings of a session, by which it is also known. */
export type Settings = Map<string, string>;

export class DatabaseError extends Error {
  readonly sqlstate: string;

  constructor(sqlstate: string, text: string) {
    super(text);
    this.sqlstate = sqlstate;
  }
}

const column = (name: string, oid: number = OID.text): Column => ({ name, oid });
const selected = (rows: number): string => `SELECT ${rows}`;

/** Statements that the gateway sends for itself, by a part of their text. */
const SYSTEM: readonly (readonly [
  part: RegExp,
  columns: readonly Column[],
  rows: readonly (readonly Value[])[],
])[] = [
  [
    /select current_user::text as name/,
    [
      column('name'),
      column('version'),
      column('vector'),
      column('said'),
      column('citus', OID.bool),
      column('aurora', OID.bool),
    ],
    [['reader', '15.18', null, 'PostgreSQL 15.18 on x86_64-pc-linux-gnu', false, false]],
  ],
  [
    /from pg_catalog\.pg_roles r/,
    [column('name'), column('super', OID.bool), column('bypass', OID.bool), column('replication', OID.bool)],
    [['reader', false, false, false]],
  ],
  [
    /from pg_catalog\.pg_foreign_table/,
    [column('name'), column('timed', OID.bool), column('partitions', OID.bool), column('readable')],
    [],
  ],
  [/select n\.nspname as name from pg_catalog/, [column('name')], []],
  [/select c\.oid::pg_catalog\.regclass::text as name/, [column('name')], []],
  [/^SELECT set_config\(name/, [column('set_config')], [['force_custom_plan']]],
  [/^SELECT 1::pg_catalog\.int4$/, [column('int4', OID.int4)], [[1]]],
];

const GOVERNED =
  /^select (?<outputs>.+) from \(select (?<columns>.*?) ?from app\.(?<table>\w+) as t where \(t\.owner = \$(?<owner>\d+)::text\)\) as r1(?: where \(r1\.id (?<operator><?=) \$(?<id>\d+)::int4\))?(?: order by 1)?$/;

/** Values of one output of a governed statement. */
function outputOf(
  text: string,
  inner: string,
  table: string,
): { readonly column: Column; of(deal: Deal, session: Settings, values: readonly string[]): Value } {
  const [, expression = '', name = ''] = /^(.+) as (c\d+)$/.exec(text) ?? [];
  const isMasked = inner.includes("'[redacted]'::text as note");
  switch (expression) {
    case 'r1.id':
      return { column: column(name, OID.int4), of: ({ id }) => id };
    case 'r1.amount':
      return { column: column(name, OID.int4), of: ({ amount }) => amount };
    case 'r1.note':
      return { column: column(name), of: ({ note }) => (isMasked ? '[redacted]' : note) };
    case 'r1.closed':
      return {
        column: column(name, OID.timestamptz),
        of: ({ id }, session) => closedAt(id, zoneOf(session)),
      };
    default: {
      const [, dividend, divisor] =
        /^\(\$(\d+)::int4 \/ \(r1\.id - \$(\d+)::int4\)\)$/.exec(expression) ?? [];
      if (dividend === undefined)
        throw new DatabaseError('42601', `the model knows no ${expression} of ${table}`);
      const of = ({ id }: Deal, _: Settings, values: readonly string[]): Value => {
        const by = id - Number(values[Number(divisor) - 1]);
        if (by === 0) throw new DatabaseError('22012', 'division by zero');
        return Math.trunc(Number(values[Number(dividend) - 1]) / by);
      };
      return { column: column(name, OID.int4), of };
    }
  }
}

function zoneOf(session: Settings) {
  return ZONES.find(({ name }) => name === session.get('TimeZone')) ?? ZONES[0];
}

/** The program of a statement. @throws DatabaseError for one that the model does not know */
export function programOf(sql: string): Program {
  const text = sql.trim();
  const set = /^SET (\w[\w.]*) TO '?(.*?)'?$/i.exec(text);
  if (set !== null)
    return {
      columns: [],
      parameters: 0,
      reads: false,
      tag: () => 'SET',
      rows: (_, session) => {
        session.set(set[1] ?? '', set[2] ?? '');
        return [];
      },
    };
  const local = /^SELECT pg_catalog\.set_config\('(\w[\w.]*)', \$1, (?:true|false)\)((?:, .*)?)$/.exec(text);
  if (local !== null) return settingProgram(text);
  if (/^SELECT pg_catalog\.current_setting\('TimeZone'\)$/.test(text))
    return {
      columns: [column('current_setting')],
      parameters: 0,
      reads: false,
      tag: selected,
      rows: (_, s) => [[s.get('TimeZone') ?? 'UTC']],
    };
  for (const [part, columns, rows] of SYSTEM)
    if (part.test(text)) return { columns, parameters: 0, reads: false, tag: selected, rows: () => rows };
  return governedProgram(text);
}

function settingProgram(text: string): Program {
  const names = [...text.matchAll(/set_config\('([\w.]+)', \$(\d+), (?:true|false)\)/g)].map(
    ([, name = '']) => name,
  );
  return {
    columns: names.map(() => column('set_config')),
    parameters: names.length,
    reads: false,
    tag: selected,
    rows: (values, session) => {
      for (const [i, name] of names.entries()) {
        const value = values[i] ?? '';
        if (name === 'TimeZone' && !ZONES.some((zone) => zone.name === value))
          throw new DatabaseError('22023', `invalid value for parameter "TimeZone": "${value}"`);
        // Otherwise it is for the session, and stays.
        if (text.includes(', true)')) session.set(`local ${name}`, session.get(name) ?? '');
        session.set(name, value);
      }
      return [names.map((_, i) => values[i] ?? '')];
    },
  };
}

function governedProgram(text: string): Program {
  const groups = GOVERNED.exec(text)?.groups;
  if (groups === undefined) throw new DatabaseError('42601', `the model does not know: ${text}`);
  const { outputs = '', columns: inner = '', table = '', owner, operator, id } = groups;
  const matching = (values: readonly string[]): Deal[] => {
    const limit = id === undefined ? DEALS : Number(values[Number(id) - 1]);
    const from = operator === '=' ? limit : 1;
    const found: Deal[] = [];
    for (let n = Math.max(1, from); n <= Math.min(DEALS, limit); n++) {
      const deal = dealOf(table, n);
      if (deal.owner === values[Number(owner) - 1]) found.push(deal);
    }
    return found;
  };
  const parameters = Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));
  const common = { parameters, reads: true, tag: selected };
  if (outputs === 'pg_catalog.count(*) as c1, pg_catalog.sum(r1.amount) as c2')
    return {
      ...common,
      columns: [column('c1', OID.int8), column('c2', OID.int8)],
      rows: (values) => {
        const deals = matching(values);
        return [
          [deals.length, deals.length === 0 ? null : deals.reduce((sum, { amount }) => sum + amount, 0)],
        ];
      },
    };
  const parts = outputs.split(/, (?=\(|r1\.)/).map((output) => outputOf(output, inner, table));
  return {
    ...common,
    columns: parts.map((part) => part.column),
    rows: (values, session) =>
      matching(values).map((deal) => parts.map((part) => part.of(deal, session, values))),
  };
}

/** A value as the protocol carries it. */
export function cell(value: Value, { oid }: Column, format: number): Buffer {
  if (value === null) return int(-1, 4);
  let bytes: Buffer = Buffer.from(value === true ? 't' : value === false ? 'f' : String(value));
  if (format === 1 && oid === OID.int4) bytes = int(Number(value), 4);
  if (format === 1 && oid === OID.int8) bytes = int(Number(value), 8);
  if (format === 1 && oid === OID.timestamptz)
    bytes = int(
      (Date.parse(
        String(value)
          .replace(' ', 'T')
          .replace(/([+-]\d\d)$/, '$1:00'),
      ) -
        Date.UTC(2000, 0, 1)) *
        1_000,
      8,
    );
  return Buffer.concat([int(bytes.length, 4), bytes]);
}

export function rowDescription(columns: readonly Column[], formats: readonly number[]): Buffer {
  const fields = columns.map(({ name, oid }, i) =>
    Buffer.concat([
      Buffer.from(`${name}\0`),
      int(0, 4),
      int(0, 2),
      int(oid, 4),
      int(-1, 2),
      int(-1, 4),
      int(formatAt(formats, i), 2),
    ]),
  );
  return message('T', int(columns.length, 2), ...fields);
}

export function formatAt(formats: readonly number[], i: number): number {
  return (formats.length === 1 ? formats[0] : formats[i]) ?? 0;
}
