import t, { type Test } from 'tap';
import type * as Units from '../../../compiler/src/functions/datetime.js';
import type * as Operators from '../../../compiler/src/functions/operators.js';
import type * as Resolve from '../../../compiler/src/functions/resolve.js';
import type * as Constants from '../../../compiler/src/govern/barrier/constants.js';
import type * as Harmless from '../../../compiler/src/govern/barrier/harmless.js';
import type * as Proofs from '../../../compiler/src/govern/verify/proofs.js';
import type * as Types from '../../../compiler/src/types/types.js';
import { clientOf, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { type Answer, openEngine } from '../golden/engine.js';
import { compiled } from './internals.js';

/**
 * What the barrier leaves bare must not fail on any stored value: every entry of its list is thrown the extremes of
 * its types, in zones on both sides of the day, on Postgres 15 and on the embedded engine.
 */
t.setTimeout(600_000);

const { RANGES } = (await compiled('types/types.js')) as typeof Types;
const { LISTED, isFewWords, isSoundContained, isSoundPattern } = (await compiled(
  'govern/barrier/harmless.js',
)) as typeof Harmless;
const { ROUNDED } = (await compiled('govern/barrier/constants.js')) as typeof Constants;
const { FUNCTIONS } = (await compiled('functions/resolve.js')) as typeof Resolve;
const { upholds } = (await compiled('govern/verify/proofs.js')) as typeof Proofs;
const { OPERATORS } = (await compiled('functions/operators.js')) as typeof Operators;
const units = (await compiled('functions/datetime.js')) as typeof Units;

/** Values of each type that a table may hold, as SQL. */
const EXTREMES: Record<string, readonly string[]> = {
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
  inet: [
    "'0.0.0.0/0'",
    "'255.255.255.255'",
    "'::/0'",
    "'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff'",
    "'10.0.0.1/8'",
  ],
  varbit: ["''", "'0'", "'1'", "repeat('10', 40000)", "'x0F'"],
  macaddr: ["'00:00:00:00:00:00'", "'ff:ff:ff:ff:ff:ff'"],
  macaddr8: ["'00:00:00:00:00:00:00:00'", "'ff:ff:ff:ff:ff:ff:ff:ff'"],
  money: ["'-92233720368547758.08'", "'92233720368547758.07'", "'0'"],
  timetz: ["'00:00+15:59:59'", "'24:00:00-15:59:59'"],
  tsvector: ["''", "'a:1A b:16383'", "repeat('x', 2046)", "'''a b'':1,2,3 c:4'"],
  tsquery: ["''", "'a & b | !c'", "'a <-> b <16384> c'", "'a:*ABCD'", "(repeat('!', 900) || 'a')"],
};
/** In their order. */
const ENDS: Readonly<Record<string, readonly [string, string, string]>> = {
  int4: ['-2147483648', '0', '2147483647'],
  int8: ['-9223372036854775808', '0', '9223372036854775807'],
  num: ['-Infinity', '0', 'NaN'],
  date: ['-infinity', '0001-01-01', 'infinity'],
  ts: ['4714-11-24 00:00:00 BC', '294276-12-31 23:59:59.999999', 'infinity'],
  tstz: ['4714-11-24 00:00:00+00 BC', '294276-12-31 23:59:59.999999+00', 'infinity'],
};
for (const [name, [least, middle, most]] of Object.entries(ENDS)) {
  const spans = [
    '(,)',
    `[${least},)`,
    `[${most},)`,
    `(,${most})`,
    `(,${least})`,
    `[${least},${most})`,
    `[${middle},${most})`,
  ];
  EXTREMES[`${name}range`] = ['empty', ...spans].map((span) => `'${span}'`);
  EXTREMES[`${name}multirange`] = [
    "'{}'",
    ...spans.map((span) => `'{${span}}'`),
    `'{[${least},${middle}),(${middle},)}'`,
  ];
}
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
  if (types.includes('anyarray')) return ARRAYS.map((a) => types.map((x) => (x === 'anyarray' ? a : x)));
  if (!types.some((x) => x === 'anyrange' || x === 'anymultirange')) return [types];
  return RANGES.map(({ range, element, multirange }) =>
    types.map((x) =>
      x === 'anyrange' ? range : x === 'anymultirange' ? multirange : x === 'anyelement' ? element : x,
    ),
  );
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

/** The largest numbers that two steps make of literals below two million, whole or not. */
const MOST_OF: Readonly<Record<string, readonly string[]>> = {
  int4: ['5999997'],
  int8: ['7999988000005999999'],
  numeric: ['7999999999880000000.000599999999999'],
  float8: ['7999999999880000000.0'],
};

/** The most that `varchar(n)` takes for `n`. */
const MOST_CHARACTERS = 10_485_760;

/** Extreme literals for the place where a part of a text begins, and for its length. */
const FIRST = ['-1999999', '-1', '0', '1', '1999999'];
const LENGTHS = ['0', '1', '999999999'];
const PARTS = LISTED.parts.flatMap((name) =>
  name === 'left' || name === 'right'
    ? LENGTHS.map((length) => `${name}($1, ${length})`)
    : FIRST.flatMap((first) => [
        `${name}($1, ${first})`,
        ...LENGTHS.map((length) => `${name}($1, ${first}, ${length})`),
      ]),
);

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
  '{"a": [], "a": {"[": "\\\\"}, "b": [2]}',
  deep(50),
];
const NOT_CONTAINED = [
  '[[1]]',
  '[{}]',
  '{"a": [1, {"b": 2}]}',
  '{"a": [[1]], "a": [1]}',
  `{"a": ${deep(50)}, "a": 1}`,
  deep(51),
  `"${'x'.repeat(10_000)}"`,
  '{',
  '["',
];

/** Searches of a thousand characters, of the sorts that nest. */
const SEARCHES = ['', '-', '--', '"a b" or ', '"', 'a ', "it's ", 'a:*&|!()<-> ', '\u{1F600} '].flatMap(
  (words) =>
    ['plainto', 'phraseto', 'websearch_to'].map(
      (name) =>
        `${name}_tsquery(${words.length % 2 === 0 ? "'english', " : ''}'${words
          .repeat(1_000)
          .slice(0, words.startsWith('-') ? 19 : 999)
          .replaceAll("'", "''")}')`,
    ),
);

/** What is made of literals, at the ends of what is let through: the largest results of two steps, every corner of a day. */
const OF_LITERALS = [
  ...FUNCTIONS.filter((f) => ROUNDED.has(f.name) && f.arguments.length === 1).flatMap(
    ({ name, arguments: [type] }) =>
      (MOST_OF[String(type)] ?? [])
        .flatMap((most) => [most, `-${most}`, '0'])
        .map((v) => `${name}('${v}'::${type})`),
  ),
  ...['1', '9999'].flatMap((year) =>
    ['1', '2', '12'].flatMap((month) => ['1', '28'].map((day) => `make_date(${year}, ${month}, ${day})`)),
  ),
  "make_date(1, 1, 1) - interval '999 years' - interval '999 years'",
  "make_date(9999, 12, 28) + interval '99999 weeks' + interval '99999 weeks'",
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
  for (const sql of OF_LITERALS) t.equal(await ask(`select ${sql}`), null, sql);
  for (const list of ["array['a', null, 'b']::text[]", 'array[]::text[]'])
    t.equal(await ask(over(`array_position(${list}, $1)`, ['text'])), null, list);
  for (const part of PARTS) t.equal(await ask(over(`pg_catalog.${part}`, ['text'])), null, part);
  t.equal(await ask("select substring('a', 1, -1)"), '22011', 'a negative length fails');
  for (const name of LISTED.cases)
    for (const one of ["'a'", "'ß'", "'İ'", 'chr(1114111)']) {
      const longest = `repeat(${one}, ${MOST_CHARACTERS})::varchar(${MOST_CHARACTERS})`;
      t.equal(
        await ask(`select length(${name}(${longest}))`),
        null,
        `${name} of the longest varchar of ${one}`,
      );
    }
  t.notOk(isFewWords('-'.repeat(20)));
  for (const search of SEARCHES) t.equal(await ask(over(`$1 @@ ${search}`, ['tsvector'])), null, search);
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
    const client = await clientOf(t, native);
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

t.test(
  'the verifier holds parts of a day, and counts of rows, to what none of them can fail on',
  async (t) => {
    const sound = { year: ['1', '9999'], month: ['1', '12'], day: ['1', '28'], count: ['0', '7'] };
    const unsound = {
      year: ['0', '-1', '10000'],
      month: ['0', '13'],
      day: ['0', '29'],
      count: ['-1', '1e9', ''],
    };
    const held = (as: keyof typeof sound, value: string): boolean =>
      upholds({ slot: 0, as }, [{ kind: 'literal', type: 'int4', value, written: true }]);
    for (const as of ['year', 'month', 'day', 'count'] as const) {
      for (const value of sound[as]) t.ok(held(as, value), `${as} ${value}`);
      for (const value of unsound[as]) t.notOk(held(as, value), `${as} ${value}`);
    }
  },
);

t.test('the verifier has the same opinion of patterns', async (t) => {
  for (const value of [...SOUND, ...UNSOUND]) {
    t.equal(
      upholds({ slot: 0, as: 'pattern' }, [{ kind: 'literal', type: 'text', value, written: true }]),
      isSoundPattern(value),
      value,
    );
  }
});
