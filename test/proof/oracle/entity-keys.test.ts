import * as compiler from 'osl-compiler';
import { compile, type EmittedSql, emit, withEntityKeys } from 'osl-compiler';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { seedOf } from '../../support/part.js';
import type { Answer } from '../golden/engine.js';
import { tablesSql } from './copies.js';
import { diceArbitrary } from './dice.js';
import { worldOf } from './probes.js';
import { asAsked, randomQuestion } from './questions.js';
import { asBytes, openOracle, planOrRefusal, stage, valuesFor } from './trial.js';
import { accessOf, catalogOf, randomWorld, type World } from './world.js';

/**
 * A plan that carries the keys of an entity gives the same answer as without them, and names each row of the entity
 * that the answer depends on: with all other rows deleted, the answer is the same. `OSL_ORACLE_RUNS` questions, from
 * `OSL_ORACLE_SEED`.
 */
const RUNS = Number(process.env['OSL_ORACLE_RUNS'] ?? 60);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? seedOf('entity-keys', 20_260_151));
const PER_WORLD = 20;
/** Skipped rows and ranks depend on rows that are not shown. */
const DEPENDS_ON_OTHERS = /\boffset\b|\bover\s*\(/i;

const engine = await openOracle();
t.teardown(() => engine.close());
t.setTimeout(3 * 3_600_000);

function withoutRows(world: World, entity: string, kept: ReadonlySet<string>): World {
  const tables = world.tables.map((table) =>
    table.name === entity ? { ...table, rows: table.rows.filter(([id]) => kept.has(id ?? '')) } : table,
  );
  return { ...world, tables };
}

/** The columns that the caller is shown. */
function shownOf(answer: Answer, width: number): Answer {
  const oids = answer.oids.slice(0, width);
  return { ...answer, oids, rows: answer.rows.map((row) => row.slice(0, width)) };
}

t.test('an answer depends on no other rows of an entity than those whose keys it carries', async (t) => {
  const counts = { asked: 0, unread: 0, refused: 0, keyed: 0, compared: 0 };
  const reasons = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(diceArbitrary, async (dice) => {
      const world = randomWorld(dice);
      const { governed, answer } = await stage(world, engine);
      const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
      const ask = (emitted: EmittedSql) => engine.ask(emitted.sql, valuesFor(emitted.slots, world));
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice);
        const plan = governed(question);
        if (plan === null) continue;
        counts.asked++;
        const read = plan.objects.map((name) => name.replace('osl.entities.', ''));
        const entity = read.length === 0 || dice.chance(0.1) ? dice.of(world.tables).name : dice.of(read);
        const keyed = withEntityKeys(plan, new Set([entity]), catalog, access);
        if (keyed !== null && 'reason' in keyed) {
          counts.refused++;
          reasons.set(keyed.reason, 1 + (reasons.get(keyed.reason) ?? 0));
          continue;
        }
        counts[keyed === null ? 'unread' : 'keyed']++;
        const plain = await answer(emit(plan));
        const shown = new Set<string>();
        if (keyed !== null) {
          const whole = await ask(emit(keyed.plan));
          const text = `${asAsked(question)}\n${emit(keyed.plan).sql}`;
          if (asBytes(shownOf(whole, plan.outputs.length)) !== asBytes(plain))
            throw new Error(`with keys another answer: ${text}\n${asBytes(whole)}\n${asBytes(plain)}`);
          for (const row of whole.rows)
            for (const key of keyed.keys) for (const column of key.columns) shown.add(row[column] ?? '');
        }
        if (plain.sqlstate !== null || DEPENDS_ON_OTHERS.test(question.text)) continue;
        const rest = withoutRows(world, entity, shown);
        await engine.setUp(`begin; ${tablesSql(rest, 'twin')} commit`);
        const other = planOrRefusal(asAsked(question), catalogOf(rest, 'twin'), accessOf(rest));
        if (other === null) throw new Error(`refused without other rows: ${asAsked(question)}`);
        counts.compared++;
        const without = await ask(emit(other));
        if (asBytes(without) !== asBytes(plain))
          throw new Error(
            `${asAsked(question)} depends on other rows of ${entity} than ${[...shown]}:\n${asBytes(plain)}\n${asBytes(without)}`,
          );
      }
    }),
    {
      numRuns: Math.ceil(RUNS / PER_WORLD),
      seed: SEED,
      endOnFailure: process.env['OSL_ORACLE_SHRINK'] === undefined,
    },
  );
  t.comment(`seed ${SEED}: ${JSON.stringify(counts)} ${JSON.stringify([...reasons])}`);
  t.ok(counts.keyed > counts.asked / 10, 'many plans carry keys');
  t.ok(counts.compared > counts.asked / 4, 'many answers are compared');
});

t.test('steps before the statement, recursion and groups', async (t) => {
  await compiler.ready();
  const [clerk, stats] = [worldOf(compiler, 'clerk'), worldOf(compiler, 'stats')];
  const employees = new Set(['employee']);
  const keysOf = (osql: string, { catalog, access } = clerk) =>
    withEntityKeys(compile(osql, catalog, access), employees, catalog, access);
  const passages = { entity: 'employee', reason: /RETRIEVE, TRAVERSE/ };
  const retrieve = "select r.text from retrieve(facet => 'note', query => 'note', top_k => 3) r";
  t.match(keysOf(retrieve), passages);
  t.match(keysOf('select e.id, e.mood from osl.entities.employee e where e.id in (1, 8)'), passages);
  const { catalog, access } = clerk;
  for (const runtime of compile(retrieve, catalog, access).runtime)
    if (runtime.kind === 'retrieval' && runtime.store !== null)
      t.match(
        withEntityKeys(runtime.store.passages, employees, catalog, access),
        { entity: 'employee' },
        'as a sample reads them',
      );
  t.match(
    keysOf(
      `with recursive w as (select id from osl.entities.employee where id = 1 union select w.id + 1 from w where w.id < 3)
       select id from w`,
    ),
    { reason: /RECURSIVE/ },
  );
  t.match(keysOf('select count(*) from osl.entities.employee'), { reason: /aggregated/ });
  t.equal(keysOf('select count(*) from osl.entities.employee', stats), null, 'only large groups are shown');
  t.equal(keysOf('select id from osl.entities.department'), null, 'it reads another entity');
});
