import { Client } from 'pg';
import t, { type Test } from 'tap';
import type * as Operators from '../../../compiler/src/functions/operators.js';
import type * as Units from '../../../compiler/src/functions/units.js';
import type * as Harmless from '../../../compiler/src/govern/harmless.js';
import type * as Proofs from '../../../compiler/src/govern/verify-proofs.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { type Answer, openEngine } from '../golden/engine.js';
import { compiled } from './internals.js';

/**
 * What the barrier leaves bare must not fail on any stored value: every entry of its list is thrown the extremes of
 * its types, in zones on both sides of the day, on Postgres 15 and on the embedded engine.
 */
t.setTimeout(300_000);

const { LISTED, isSoundContained, isSoundPattern } = (await compiled(
  'govern/harmless.js',
)) as typeof Harmless;
const { upholds } = (await compiled('govern/verify-proofs.js')) as typeof Proofs;
const { OPERATORS } = (await compiled('functions/operators.js')) as typeof Operators;
const units = (await compiled('functions/units.js')) as typeof Units;

/** Values of each type that a table may hold, as SQL. */
const EXTREMES: Readonly<Record<string, readonly string[]>> = {
  bool: ['true', 'false'],
  int2: ["'-32768'", "'32767'", '0'],
  int4: ["'-2147483648'", "'2147483647'", '0', '-1'],
  int8: ["'-9223372036854775808'", "'9223372036854775807'", '0'],
  float4: ["'3.4028235e38'", "'-3.4028235e38'", "'1e-45'", "'NaN'", "'Infinity'", "'-Infinity'", "'-0'"],
  float8: [
    "'1.7976931348623157e308'",
    "'-1.7976931348623157e308'",
    "'5e-324'",
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
  ],
  numeric: [
    "'NaN'",
    "'Infinity'",
    "'-Infinity'",
    "('9' || repeat('9', 131071))",
    "('-9' || repeat('9', 131071))",
    "('0.' || repeat('0', 16382) || '1')",
    '0',
  ],
  text: [
    "''",
    "'a'",
    "'\\'",
    "'%_'",
    "repeat('ß', 30000)",
    'chr(1114111)',
    "'İ'",
    "('e' || chr(769))",
    "repeat('a', 4000)",
  ],
  uuid: ["'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"],
  date: ["'4713-01-01 BC'", "'5874897-12-31'", "'infinity'", "'-infinity'", "'0001-01-01'", "'294277-01-01'"],
  time: ["'00:00'", "'24:00:00'", "'23:59:59.999999'"],
  timestamp: [
    "'4714-11-24 00:00:00 BC'",
    "'294276-12-31 23:59:59.999999'",
    "'infinity'",
    "'-infinity'",
    "'0001-01-01'",
  ],
  timestamptz: [
    "'4714-11-24 00:00:00+00 BC'",
    "'294276-12-31 23:59:59.999999+00'",
    "'infinity'",
    "'-infinity'",
    "'0001-01-01+00'",
  ],
  interval: [
    "'178000000 years'",
    "'-178000000 years'",
    "'2147483647 days'",
    "'-2147483648 days'",
    "'2562047788:00:54.775807'",
    "'-2562047788:00:54.775807'",
    "'0'",
  ],
  bytea: ["''", "'\\xff'", "decode(repeat('00', 30000), 'hex')"],
  jsonb: [
    "'null'",
    "'{}'",
    "'[]'",
    "'1'",
    '\'"x"\'',
    `'{"a": {"b": [1, null]}}'`,
    "('1' || repeat('0', 131071))",
    "(repeat('[', 900) || repeat(']', 900))",
  ],
};
for (const [type, values] of Object.entries({ ...EXTREMES })) {
  const first = values[0] ?? 'null';
  Object.assign(EXTREMES, {
    [`${type}[]`]: [
      `'{}'::${type}[]`,
      `array[null]::${type}[]`,
      `array[${values.map((v) => `${v}::${type}`).join(', ')}]`,
      `array[array[${first}::${type}], array[null]]`,
    ],
  });
}
const ARRAYS = ['int4[]', 'text[]', 'numeric[]', 'jsonb[]', 'timestamptz[]', 'bytea[]'];
const ZONES = ['UTC', 'Pacific/Kiritimati', 'Etc/GMT+12', 'America/New_York'];

/** \`expr\` over \`a\`, \`b\`, \`c\` of these types, of every combination of extremes and NULL; what it failed with, or null. */
type Ask = (sql: string) => Promise<string | null>;

function over(expr: string, types: readonly string[]): string {
  const names = ['a', 'b', 'c'];
  const from = types.map((type, i) => {
    const values = [...(EXTREMES[type] ?? []).map((v) => `(${v}::${type})`), `(null::${type})`];
    return `(values ${values.join(', ')}) as ${names[i]}(v)`;
  });
  const placed = types.reduce((text, _, i) => text.replaceAll(`$${i + 1}`, `${names[i]}.v`), expr);
  // An aggregate that must look at each value, so that nothing is left out.
  return `select count((${placed}) is null)${from.length === 0 ? '' : ` from ${from.join(', ')}`}`;
}

/** Polymorphic types, by what they stand for. */
function concrete(types: readonly string[]): readonly (readonly string[])[] {
  return types.includes('anyarray')
    ? ARRAYS.map((a) => types.map((x) => (x === 'anyarray' ? a : x)))
    : [types];
}

function entries(): readonly (readonly [sql: string, types: readonly string[]])[] {
  const comparisons = OPERATORS.filter((o) => LISTED.comparisons.has(o.name)).map(
    (o) => [`$1 ${o.name} $2`, [String(o.left), String(o.right)]] as const,
  );
  const operators = [...LISTED.operators.keys()].map((key) => {
    const [left = '', name = '', right = ''] = key.split(' ');
    return [
      `$1 operator(pg_catalog.${name}) $2${name === '^@' ? ' collate "default"' : ''}`,
      [left, right],
    ] as const;
  });
  const casts = [...LISTED.casts].map((key) => {
    const [from = '', to = ''] = key.split(' ');
    return [`cast($1 as ${to})`, [from]] as const;
  });
  return [...comparisons, ...operators, ...casts].flatMap(([sql, types]) =>
    concrete(types).map((c) => [sql, c] as const),
  );
}

const FIELDS: Readonly<Record<string, ReadonlySet<string>>> = {
  date: units.DATE_FIELDS,
  time: units.TIME_FIELDS,
  timestamp: units.TIMESTAMP_FIELDS,
  timestamptz: units.TIMESTAMPTZ_FIELDS,
  interval: units.INTERVAL_FIELDS,
};

function calls(): readonly (readonly [sql: string, types: readonly string[]])[] {
  return [...LISTED.calls.keys()].flatMap((key): (readonly [string, readonly string[]])[] => {
    const [name = '', ...types] = key.split(' ');
    if (name !== 'extract' && name !== 'date_part') {
      const args = types.map((_, i) => `$${i + 1}`).join(', ');
      return [[`pg_catalog.${name}(${args}${name === 'starts_with' ? ' collate "default"' : ''})`, types]];
    }
    const type = types[1] ?? '';
    return [...(FIELDS[type] ?? [])].map((unit) => [`pg_catalog."${name}"('${unit}', $1)`, [type]] as const);
  });
}

/** Patterns that are sound and some that are not; a text on which the latter fail. */
const SOUND = ['', '%', 'a%', '%a%b%', '_', '\\%', '\\\\', '\\_%', 'a\\\\', '%'.repeat(100), 'ß%', '%\\%%'];
const UNSOUND = ['\\', 'a\\', '%\\', 'a%\\\\\\'];

/** What a stored JSON may be searched for, and what not without a question: containers in arrays, and great depth. */
const deep = (levels: number): string => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const CONTAINED = [
  '{}',
  '[]',
  'null',
  '1e400',
  '"x"',
  '{"a": {"b": [1, null]}}',
  '[1, null, "[{", true]',
  '{"a": "}]\\\\"}',
  deep(50),
];
const NOT_CONTAINED = [
  '[[1]]',
  '[{}]',
  '{"a": [1, {"b": 2}]}',
  deep(51),
  `"${'x'.repeat(10_000)}"`,
  '{',
  '["',
];

async function thrown(t: Test, ask: Ask): Promise<void> {
  for (const [sql, types] of entries())
    t.equal(await ask(over(sql, types)), null, `${sql} of ${types.join(', ')}`);
  for (const zone of ZONES) {
    await ask(`set timezone = '${zone}'`);
    for (const [sql, types] of calls()) {
      const said = await ask(over(sql, types));
      if (said !== null || zone === 'UTC') t.equal(said, null, `${sql} of ${types.join(', ')} in ${zone}`);
    }
    for (const type of ['timestamp', 'timestamptz'])
      t.equal(await ask(over("pg_catalog.timezone('UTC', $1)", [type])), null, `UTC of ${type} in ${zone}`);
  }
  await ask("set timezone = 'UTC'");
  for (const pattern of SOUND) {
    t.ok(isSoundPattern(pattern), pattern);
    t.equal(await ask(over(`$1 ~~ '${pattern}' collate "default"`, ['text'])), null, `like ${pattern}`);
  }
  for (const pattern of UNSOUND) t.notOk(isSoundPattern(pattern), pattern);
  for (const json of CONTAINED) {
    t.ok(isSoundContained(json), json);
    const stored = [...(EXTREMES['jsonb'] ?? []), `'${json}'`, `(repeat('[', 3000) || repeat(']', 3000))`];
    const from = stored.map((v) => `(${v}::jsonb)`).join();
    t.equal(
      await ask(`select count((v @> '${json}'::jsonb) is null) from (values ${from}) as a(v)`),
      null,
      `contains ${json}`,
    );
  }
  for (const json of NOT_CONTAINED) t.notOk(isSoundContained(json), json);
  t.equal(
    await ask("select 'ab' ~~ 'a\\'"),
    '22025',
    'a pattern that ends in an escape fails where matching gets there',
  );
  t.equal(await ask("select 'b' ~~ 'a\\'"), null, 'and only there');
}

const native = await startNativePostgres();
const embedded = await openEngine(['extremes']);
t.teardown(() => embedded.close());
t.test('nothing on the list fails, embedded', async (t) => {
  await thrown(t, async (sql) => {
    const answer: Answer = await embedded.ask(sql, []);
    return answer.sqlstate;
  });
});

if (native === null) t.test('nothing on the list fails, native', { skip: NO_NATIVE }, async () => undefined);
else
  t.test('nothing on the list fails, native', async (t) => {
    const client = new Client({ connectionString: native.url });
    await client.connect();
    t.teardown(async () => {
      await client.end();
      await native.stop();
    });
    const ask: Ask = async (sql) => {
      try {
        await client.query(sql);
        return null;
      } catch (error) {
        return String((error as { code?: unknown }).code); // pg gives the SQLSTATE
      }
    };
    await thrown(t, ask);
    await ask("create collation folded (provider = icu, locale = 'und-u-ks-level2', deterministic = false)");
    await ask('create table folded (v text collate folded)');
    await ask("insert into folded values ('Ada')");
    t.equal(
      await ask("select * from folded where v like 'a%'"),
      '0A000',
      'LIKE fails where a collation folds letters',
    );
    t.equal(
      await ask(`select * from folded where v like 'a%' collate "default"`),
      null,
      'and not as it is emitted',
    );
    for (const compare of ['=', '<', '<>'])
      t.equal(await ask(`select * from folded where v ${compare} 'a'`), null, compare);
  });

t.test('the verifier has the same opinion of what JSON is searched for', async (t) => {
  for (const value of [...CONTAINED, ...NOT_CONTAINED]) {
    t.equal(
      upholds({ slot: 0, as: 'contained' }, [{ kind: 'literal', type: 'jsonb', value, written: true }]),
      isSoundContained(value),
      value,
    );
  }
});

t.test('the verifier has the same opinion of patterns', async (t) => {
  for (const value of [...SOUND, ...UNSOUND]) {
    t.equal(
      upholds({ slot: 0, as: 'pattern' }, [{ kind: 'literal', type: 'text', value, written: true }]),
      isSoundPattern(value),
      value,
    );
  }
});
