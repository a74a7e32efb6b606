import { readFileSync } from 'node:fs';
import { compile, emit, QueryError } from 'osl-compiler';
import t, { type Test } from 'tap';
import { parseCases } from '../golden/cases.js';
import { CATALOG } from '../golden/catalog.js';
import { CASES, caseFiles } from '../golden/files.js';
import { callerNamed } from '../golden/outcome.js';
import { diceFrom } from './dice.js';
import { asAsked, randomQuestion } from './questions.js';
import { type Recompiled, recompile } from './recompile.js';
import { planOrRefusal } from './trial.js';
import { accessOf, catalogOf, randomWorld } from './world.js';

/** Every emitted statement is compiled again over the caller's own tables: it refers to nothing beyond them. */

/** Questions of the oracle that are read so; `OSL_RECOMPILE_RUNS` asks for more. */
const RUNS = Number(process.env['OSL_RECOMPILE_RUNS'] ?? 600);
const PER_WORLD = 15;

interface Count {
  all: number;
  reached: number;
}

function judge(t: Test, name: string, read: Recompiled, count: Count): void {
  count.all++;
  if (read.kind === 'unreached') {
    // The fence of grouping sets is an OFFSET.
    if (/^WITH TIES beside OFFSET/.test(read.error.message)) {
      count.all--;
      return;
    }
    // A subquery that is a group's key stands in the SQL twice, and the compiler takes no two for the same.
    if (read.error.entry !== 'grouping') t.fail(`not reached: ${read.error.message}: ${name}`);
    return;
  }
  count.reached++;
  if (read.findings.length > 0) t.fail(`${name}: ${read.findings.join('; ')}`);
}

t.test('the SQL of the golden cases', async (t) => {
  const count = { all: 0, reached: 0 };
  for (const file of caseFiles()) {
    for (const golden of parseCases(readFileSync(new URL(file, CASES), 'utf8'))) {
      const { access } = callerNamed(golden.caller);
      const emitted = emittedFor(golden.query, access, golden.world);
      if (emitted !== null) judge(t, golden.name, recompile(emitted, CATALOG, access), count);
    }
  }
  t.comment(`compiled again: ${count.reached} of ${count.all} statements`);
  t.ok(count.all > 250);
  t.equal(count.reached, count.all, 'all of them are within the grammar of raw SQL');
});

t.test('the SQL of random questions in random worlds', async (t) => {
  const count = { all: 0, reached: 0 };
  for (let seed = 0; seed < RUNS / PER_WORLD; seed++) {
    const dice = diceFrom(seed);
    const world = randomWorld(dice);
    const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
    for (let i = 0; i < PER_WORLD; i++) {
      const question = asAsked(randomQuestion(world, dice));
      const plan = planOrRefusal(question, catalog, access);
      if (plan !== null)
        judge(t, `world ${seed}: ${question}`, recompile(emit(plan), catalog, access), count);
    }
  }
  t.comment(`compiled again: ${count.reached} of ${count.all} statements`);
  t.ok(count.all > RUNS / 2);
  t.ok(count.reached / count.all > 0.99);
});

function emittedFor(
  query: string,
  access: Parameters<typeof compile>[2],
  world: 'semantic' | 'physical' | 'either',
) {
  try {
    return emit(compile(query, CATALOG, access, { world }));
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw error;
  }
}

/** A question, and what a faulty compiler might make of its SQL: `from` becomes `to`. */
interface Fault {
  readonly name: string;
  readonly caller: string;
  readonly query: string;
  readonly from: string;
  readonly to: string;
  readonly found: RegExp;
}

const FAULTS: readonly Fault[] = [
  {
    name: 'another table',
    caller: 'regional',
    query: 'select id from customer',
    from: 'shop.customers',
    to: 'shop.tags',
    found: /`shop.tags` is not on the allowlist/,
  },
  {
    name: 'a table of the system',
    caller: 'owner',
    query: 'select id from tag',
    from: 'shop.tags',
    to: 'pg_catalog.pg_authid',
    found: /pg_authid/,
  },
  {
    name: 'a column that is not granted',
    caller: 'narrow',
    query: 'select name from customer',
    from: 't.name',
    to: 't.score as name',
    found: /`t.score` is not declared/,
  },
  {
    name: 'a column that a rule denies',
    caller: 'narrow',
    query: 'select name from customer',
    from: 't.name',
    to: 't.vip as name',
    found: /`t.vip` is not declared/,
  },
  {
    name: 'a column that only the row filter may read, shown',
    caller: 'filtered',
    query: 'select name from customer',
    from: 't.name',
    to: 't.vip as name',
    found: /vip is of a row filter/,
  },
  {
    name: 'the same column, computed with',
    caller: 'filtered',
    query: 'select name from customer',
    from: 't.name',
    to: 'cast(t.vip as text) as name',
    found: /vip is of a row filter/,
  },
  {
    name: 'a mask left out',
    caller: 'masked',
    query: 'select email from customer',
    from: "'[redacted]'::text as email",
    to: 't.email',
    found: /email is masked in every row/,
  },
  {
    name: 'a function in the place of a mask',
    caller: 'masked',
    query: 'select email from customer',
    from: "'[redacted]'::text as email",
    to: 'pg_catalog.upper(t.email) as email',
    found: /email is computed with under the mask redact/,
  },
  {
    name: 'the CASE of a union of grants left out',
    caller: 'overlap',
    query: 'select email from customer',
    from: "case when (t.region_code = $1::text) then t.email else '[redacted]'::text end as email",
    to: 't.email',
    found: /email is masked in some rows/,
  },
  {
    name: 'a predicate on a masked column beside the filter',
    caller: 'masked',
    query: 'select id from customer',
    from: 'shop.customers as t',
    to: "shop.customers as t where (t.email = 'x'::text)",
    found: /email is masked in every row/,
  },
  {
    name: 'a table joined below its scan',
    caller: 'owner',
    query: 'select id from customer',
    from: 'shop.customers as t',
    to: 'shop.customers as t join shop.tags as u on true',
    found: /a join reads customers itself/,
  },
];

t.test('a faulty statement is found', async (t) => {
  for (const { name, caller, query, from, to, found } of FAULTS) {
    const { access } = callerNamed(caller);
    const { sql } = emit(compile(query, CATALOG, access));
    t.ok(sql.includes(from), `${name}: its SQL has ${from}`);
    t.strictSame(recompile({ sql }, CATALOG, access), { kind: 'compiled', findings: [] }, `${name}: sound`);
    const read = recompile({ sql: sql.replace(from, to) }, CATALOG, access);
    t.match(read, { kind: 'compiled' });
    if (read.kind === 'compiled') t.match(read.findings.join('; '), found, name);
  }
});
