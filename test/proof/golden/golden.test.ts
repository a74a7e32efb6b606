import { readFileSync } from 'node:fs';
import { emit, oidOf } from 'osl-compiler';
import t from 'tap';
import { type Case, parseCases, writeCase } from './cases.js';
import { CALLERS, CATALOG, SHOP_SQL } from './catalog.js';
import { type Engine, openEngine } from './engine.js';
import { CASES, caseFiles } from './files.js';
import { describeOutcome, type Outcome, outcomeOf } from './outcome.js';
import { allowedTables, outside, scansByOtherParser, scansByPostgres } from './reparse.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const engine: Engine = await openEngine(['shop']);
await engine.setUp(SHOP_SQL);
t.teardown(() => engine.close());

const answered: { readonly golden: Case; readonly outcome: Extract<Outcome, { kind: 'answered' }> }[] = [];

for (const file of caseFiles()) {
  t.test(file, async (t) => {
    const text = readFileSync(new URL(file, CASES), 'utf8');
    const written: string[] = [];
    for (const golden of parseCases(text)) {
      const outcome = await outcomeOf(golden, engine);
      written.push(writeCase(golden, describeOutcome(golden, outcome)));
      if (outcome.kind === 'answered') answered.push({ golden, outcome });
    }
    t.equal(`${written.join('\n\n')}\n`, text, 'as written; `npm run golden` rewrites it');
  });
}

t.test('the engine names the types that the plan promised', async (t) => {
  for (const { golden, outcome } of answered) {
    const { plan, answer } = outcome;
    if (answer.sqlstate !== null) continue;
    t.same(
      answer.oids,
      plan.outputs.map((o) => oidOf(o.type)),
      golden.name,
    );
  }
});

t.test('two parsers of different families find nothing that the caller may not see', async (t) => {
  let reached = 0;
  for (const { golden, outcome } of answered) {
    const caller = CALLERS.get(golden.caller);
    const allowed = allowedTables(CATALOG, caller?.access);
    const { sql } = emit(outcome.plan);
    t.same(outside(scansByPostgres(sql), allowed), [], golden.name);
    const other = scansByOtherParser(sql);
    if (other === null) continue;
    reached++;
    t.same(outside(other, allowed), [], `${golden.name}, by pgsql-ast-parser`);
  }
  t.comment(`pgsql-ast-parser reached ${reached} of ${answered.length} statements`);
  t.ok(reached / answered.length > 0.7, 'most statements are within its grammar');
});

t.test('what is masked in every row is not in the SQL at all', async (t) => {
  const { sql } = emit(planOf('masked', 'select * from customer'));
  for (const column of ['email', 'ssn', 'score']) t.notMatch(sql, new RegExp(`t\\.${column}\\b`));
});

function planOf(caller: string, query: string) {
  const found = answered.find(({ golden }) => golden.caller === caller && golden.query.startsWith(query));
  if (found === undefined) throw new Error(`no case asks ${query}`);
  return found.outcome.plan;
}
