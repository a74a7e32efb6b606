import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { bindPredicate, type Expr, type Relation, ready } from 'osl-compiler';
import t, { test } from 'tap';
import { Solver } from '../../../cli/policy-proof/solver.js';
import { and, equal, type Formula, not, number, text, variable } from '../../../policy/proof/formula.js';
import { momentOf } from '../../../policy/proof/literals.js';
import { scriptOf } from '../../../policy/proof/smt.js';
import { Encoder } from '../../../policy/proof/values.js';
import { loadModel } from '../../../src/service/model.js';
import { SEED } from '../../support/fast-check.js';
import { openEngineOf, type TestDatabase } from './database.js';

/** Predicates over rows have the truth value in the solver that they have in the database. */

await ready();
t.setTimeout(240_000);

const COLUMNS = [
  ['i', 'int4'],
  ['j', 'int4'],
  ['n', 'numeric'],
  ['t', 'text'],
  ['d', 'date'],
  ['b', 'bool'],
] as const;

const RELATION: Relation = {
  kind: 'entity',
  name: 'sample',
  description: null,
  connector: 'db',
  schema: 'public',
  table: 'sample',
  primaryKey: [],
  sealedKeys: [],
  columns: COLUMNS.map(([name, type]) => ({
    name,
    physical: name,
    type,
    description: null,
    nullable: true,
    sensitivity: null,
    keyDomain: null,
  })),
};

/** Values of which rows are made, near the literals of predicates. */
const VALUES: Readonly<Record<string, readonly (string | null)[]>> = {
  i: [null, '0', '1', '2', '3', '2147483647', '-2147483648'],
  j: [null, '0', '1', '2', '-1'],
  n: [null, '0', '0.5', '1', '1.5', '-2', 'NaN', 'Infinity', '-Infinity'],
  t: [null, '', 'a', 'b', 'ab', 'abc', 'A', 'é'],
  d: [null, '2026-01-01', '2026-01-02', '2025-12-31', 'infinity', '-infinity'],
  b: [null, 'true', 'false'],
};

const ATOMS = [
  'i = 1',
  'i <> 2',
  'i < j',
  'i >= 2',
  'i between 1 and 2',
  'i in (1, 3)',
  'i not in (1, null)',
  'i + 1 > j',
  'i - j < 2',
  '2 * j <= i',
  'i is null',
  'i is distinct from j',
  'i is not distinct from 1',
  'i = any (array[1, 2])',
  'i <> all (array[0, 1])',
  'n > 1',
  'n = 0.5',
  'n <= i',
  'n + 1 > n',
  "n * 'Infinity'::numeric > 0",
  "'-Infinity'::numeric * n > n",
  'n is null',
  "t = 'a'",
  "t <> 'ab'",
  "t like 'a%'",
  "t not like 'ab%'",
  "t like 'abc'",
  `t collate "C" < 'b'`,
  "t in ('a', 'é')",
  "d > '2026-01-01'",
  "d <= '2026-01-01'",
  "d = '2025-12-31'",
  'b',
  'b is true',
  'b is not false',
  'b is unknown',
  'b = (i > 1)',
  'coalesce(i, 0) > 1',
  'nullif(i, 1) = 2',
  'coalesce(b, true)',
  "case when i > 1 then t = 'a' when b then j > 0 else n > 1 end",
  'case when b then i else j end > 0',
];

/** Numbers from 0 to 1, the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
}

function predicates(count: number, random: () => number): readonly string[] {
  const atom = (): string => ATOMS[Math.floor(random() * ATOMS.length)] ?? 'true';
  const made = Array.from({ length: count }, () => {
    const [a, b, c] = [atom(), atom(), atom()];
    const inner = random() < 0.5 ? `(${a}) and (${b})` : `(${a}) or not (${b})`;
    return random() < 0.5 ? `not (${inner}) or (${c})` : `(${inner}) and (${c})`;
  });
  return [...ATOMS, ...made];
}

function rows(count: number, random: () => number): readonly Readonly<Record<string, string | null>>[] {
  return Array.from({ length: count }, () =>
    Object.fromEntries(
      COLUMNS.map(([name]) => {
        const from = VALUES[name] ?? [null];
        return [name, from[Math.floor(random() * from.length)] ?? null];
      }),
    ),
  );
}

/** That the variables of a row have these values. */
function isRow(row: Readonly<Record<string, string | null>>, encoder: Encoder): Formula {
  return and(
    ...[...encoder.columns.values()].map(({ column, type, isNull, value, rank }) => {
      const given = row[column] ?? null;
      const none = variable(isNull, 'Bool');
      if (given === null) return none;
      if (value === null) throw new Error(`column ${column} is not understood`);
      if (type === 'bool')
        return and(not(none), given === 'true' ? variable(value, 'Bool') : not(variable(value, 'Bool')));
      if (type === 'text') return and(not(none), equal(variable(value, 'String'), text(given)));
      const infinite = RANKS[given.toLowerCase()];
      const ranked = rank === null ? and() : equal(variable(rank, 'Int'), number(infinite ?? '0', 'Int'));
      if (infinite !== undefined) return and(not(none), ranked);
      const sort = type === 'numeric' ? 'Real' : 'Int';
      const digits = type === 'date' ? (momentOf(given, type) ?? '0') : given;
      return and(not(none), ranked, equal(variable(value, sort), number(digits, sort)));
    }),
  );
}

const RANKS: Readonly<Record<string, string>> = { infinity: '1', '-infinity': '-1', nan: '2' };

test('a predicate is true, false or NULL of a row in the solver as it is in the database', {
  timeout: 300_000,
}, async (t) => {
  const random = randomOf(SEED);
  const solver = await Solver.start();
  const database: TestDatabase = await openEngineOf(t, COLUMNS);
  t.teardown(() => solver.stop());
  const texts = predicates(40, random);
  const sample = rows(10, random);
  await database.fill(sample);
  let compared = 0;
  for (const predicate of texts) {
    const bound: Expr = bindPredicate(predicate, RELATION);
    const encoder = new Encoder(RELATION);
    const { isTrue, isFalse } = encoder.truth(bound);
    const expected = await database.truthsOf(predicate);
    for (const [i, row] of sample.entries()) {
      const value = expected[i];
      if (value === 'error') continue; // the whole query fails, and nobody sees anything
      // The row leaves no choice, so any model has the truth value.
      const facts = [...encoder.facts, isRow(row, encoder)];
      const script = scriptOf(facts, [[]], [isTrue, isFalse]);
      const [answer] = await solver.check(script, { wantsValues: true });
      if (answer?.kind !== 'sat') {
        t.fail(`${predicate}: row ${JSON.stringify(row)} is impossible in the solver`);
        continue;
      }
      const model = script.model(new Map(answer.constants));
      const found = model.holds(isTrue) ? true : model.holds(isFalse) ? false : null;
      if (found !== value)
        t.fail(`${predicate} of ${JSON.stringify(row)}: ${found} in the solver, ${value} in the database`);
      compared += 1;
    }
  }
  t.ok(compared >= 80 * 8, `${compared} truth values compared`);
});

test('nine in ten filters of the cookbook and the examples are understood', async (t) => {
  const folders = readdirSync('examples/cookbook').map((name) => join('examples/cookbook', name));
  const beyond: string[] = [];
  let filters = 0;
  for (const folder of [...folders, 'examples/supply-chain', 'examples/reference']) {
    const { manifest, snapshot } = await loadModel(
      join(folder, 'manifest.yaml'),
      join(folder, 'policy.yaml'),
      null,
    );
    for (const { grants } of snapshot?.roles.values() ?? [])
      for (const [name, own] of grants)
        for (const { filter } of own) {
          const relation = manifest.catalog.relations.get(name);
          if (filter === null || relation === undefined) continue;
          filters += 1;
          const encoder = new Encoder(relation);
          encoder.accepts(filter);
          beyond.push(...encoder.unknowns.values());
        }
  }
  t.ok(filters >= 10, `${filters} filters`);
  t.ok(beyond.length <= filters / 10, beyond.join('; '));
});
