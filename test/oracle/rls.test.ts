import fc from 'fast-check';
import { compile, emit } from 'osl-compiler';
import { Client } from 'pg';
import t from 'tap';
import type { Answer } from '../golden/engine.js';
import { startNativePostgres } from '../support/native-postgres.js';
import { allClear, anyOf, tablesSql } from './copies.js';
import { type Dice, diceArbitrary } from './dice.js';
import { asAsked, type Question, randomQuestion } from './questions.js';
import { asBytes, planOrRefusal, valuesFor } from './trial.js';
import { accessOf, catalogOf, randomWorld, type World } from './world.js';

/**
 * The same row filters twice: as ours, and as policies of Postgres' own row-level security for an unprivileged role.
 * The governed answer equals what Postgres gives that role. `OSL_RLS_RUNS` questions, from `OSL_ORACLE_SEED`.
 */
const RUNS = Number(process.env['OSL_RLS_RUNS'] ?? 500);
const SEED = Number(process.env['OSL_ORACLE_SEED'] ?? 20_260_104);
const PER_WORLD = 20;

const postgres = await startNativePostgres();
t.setTimeout(3 * 3_600_000);

/** Row filters only: every column of every grant in the clear, under its own name. */
function unmasked(world: World): World {
  const tables = world.tables.map((table) => {
    const columns = table.columns.map((c) => ({ ...c, physical: c.name, sensitivity: null }));
    const all = new Set(columns.map((c) => c.name));
    const grants = table.grants.map((g) => ({ ...g, columns: all }));
    return { ...table, columns, grants, denied: new Set<string>() };
  });
  return { ...world, tables };
}

/** The tables of `world` in `rls`, each with its filters as a policy for the reader. */
function policiesSql(world: World): string {
  return world.tables
    .map((table) => {
      const name = `rls.${table.name}`;
      return `alter table ${name} enable row level security;
        create policy rows on ${name} for select to osl_reader
          using (${anyOf(table.grants, table, world.subjects)});
        grant select on ${name} to osl_reader; grant select on whole.${table.name} to osl_reader;`;
    })
    .join('\n');
}

/** Whether which rows come depends on ties, which ours breaks by key and a text as it stands does not. */
function hangsOnTies(text: string): boolean {
  return /\b(limit|over|array_agg|string_agg)\b|distinct on/.test(text);
}

async function asker(url: string, searchPath: string) {
  const client = new Client({ connectionString: url, types: { getTypeParser: () => (v: unknown) => v } });
  await client.connect();
  await client.query(`set search_path = ${searchPath}; set timezone = 'UTC'`);
  const ask = async (text: string, values: readonly (string | null)[]): Promise<Answer> => {
    try {
      const { fields, rows } = await client.query({ text, values: [...values], rowMode: 'array' });
      return { oids: fields.map((f) => f.dataTypeID), rows, sqlstate: null };
    } catch (error) {
      if (error instanceof Error && 'code' in error && typeof error.code === 'string')
        return { oids: [], rows: [], sqlstate: error.code };
      throw error;
    }
  };
  return { ask, end: () => client.end() };
}

if (postgres === null) {
  t.test('the rows of row-level security', { skip: 'there is no native Postgres' }, async () => undefined);
} else {
  const admin = new Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(`create schema whole; create schema rls; grant usage on schema whole, rls to osl_reader`);
  const governed = await asker(postgres.readerUrl, 'pg_catalog');
  const guarded = await asker(postgres.readerUrl, 'rls');
  t.teardown(async () => {
    await Promise.all([admin.end(), governed.end(), guarded.end()]);
    await postgres.stop();
  });

  /** What Postgres says: to the text itself where that has one answer, else to our plan of it without any policy. */
  const truth = (question: Question, world: World): Promise<Answer> => {
    const text = asAsked(question);
    if (!hangsOnTies(text)) return guarded.ask(text, []);
    const catalog = catalogOf(world, 'rls');
    const { sql, slots } = emit(compile(text, catalog, allClear(catalog)));
    return guarded.ask(sql, valuesFor(slots, world));
  };

  t.test('a question has the rows of row-level security', async (t) => {
    const counts = { asked: 0, verbatim: 0, failed: 0, empty: 0 };
    const started = Date.now();
    const trial = async (world: World, dice: Dice): Promise<void> => {
      await admin.query(
        `begin; ${tablesSql(world, 'whole')} ${tablesSql(world, 'rls')} ${policiesSql(world)} commit`,
      );
      const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice);
        const plan = planOrRefusal(asAsked(question), catalog, access);
        if (plan === null) throw new Error(`nothing is masked, yet a key is refused: ${asAsked(question)}`);
        const { sql, slots } = emit(plan);
        const [got, wanted] = [
          await governed.ask(sql, valuesFor(slots, world)),
          await truth(question, world),
        ];
        counts.asked++;
        if (!hangsOnTies(asAsked(question))) counts.verbatim++;
        if (got.sqlstate !== null) counts.failed++;
        else if (got.rows.length === 0) counts.empty++;
        if (asBytes(got) === asBytes(wanted)) continue;
        throw new Error(
          [
            asAsked(question),
            policiesSql(world),
            sql,
            asBytes(got),
            'but Postgres says',
            asBytes(wanted),
          ].join('\n'),
        );
      }
    };
    await fc.assert(
      fc.asyncProperty(diceArbitrary, (dice) => trial(unmasked(randomWorld(dice)), dice)),
      { numRuns: Math.ceil(RUNS / PER_WORLD), seed: SEED, endOnFailure: true },
    );
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
    t.ok(counts.verbatim > counts.asked / 3, 'many texts are asked as they stand');
    t.ok(counts.empty < counts.asked / 2, 'most answers have rows');
  });
}
