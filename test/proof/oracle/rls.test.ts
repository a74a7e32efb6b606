import { compile, emit } from 'osl-compiler';
import { Client } from 'pg';
import t from 'tap';
import { fc } from '../../support/fast-check.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import type { Answer } from '../golden/engine.js';
import { allClear, anyOf, tablesSql } from './copies.js';
import { type Dice, diceArbitrary } from './dice.js';
import { type Draft, FAULTS, type Fault } from './faults.js';
import { emitUngoverned } from './internals.js';
import { asAsked, type Question, randomQuestion } from './questions.js';
import { type SecondLine, secondLine } from './second-line.js';
import { asBytes, planOrRefusal, valuesFor } from './trial.js';
import { accessOf, catalogOf, randomWorld, type World } from './world.js';

/**
 * The same row filters twice: as ours, and as policies of Postgres' own row-level security for an unprivileged role.
 * The governed answer equals what Postgres gives that role. `OSL_RLS_RUNS` questions, from `OSL_ORACLE_SEED`.
 *
 * Each question is asked a second time where the policies that `osl row-security` writes stand behind it, and a third
 * time there by a compiler that has lost the row filter.
 */
const RUNS = Number(process.env['OSL_RLS_RUNS'] ?? 240);
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

/** One mask for each label, as a policy has it. */
function likeMasks(world: World): World {
  const [first] = world.tables;
  const tables = world.tables.map((table) => ({ ...table, masks: first?.masks ?? table.masks }));
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

/** True if the choice of rows depends on ties, which ours breaks by key and a text as it stands does not. */
function hangsOnTies(text: string): boolean {
  return /\b(limit|over|array_agg|string_agg)\b|distinct on/.test(text);
}

async function asker(url: string, searchPath: string) {
  const client = new Client({ connectionString: url, types: { getTypeParser: () => (v: unknown) => v } });
  await client.connect();
  await client.query(`set search_path = ${searchPath}; set timezone = 'UTC'`);
  const ask = async (
    text: string,
    values: readonly (string | null)[],
    rights: string | null = null,
  ): Promise<Answer> => {
    if (rights !== null) {
      await client.query('begin read only');
      await client.query("select set_config('osl.rights', $1, true)", [rights]);
    }
    try {
      const { fields, rows } = await client.query({ text, values: [...values], rowMode: 'array' });
      return { oids: fields.map((f) => f.dataTypeID), rows, sqlstate: null };
    } catch (error) {
      if (error instanceof Error && 'code' in error && typeof error.code === 'string')
        return { oids: [], rows: [], sqlstate: error.code };
      throw error;
    } finally {
      if (rights !== null) await client.query('rollback');
    }
  };
  return { ask, end: () => client.end() };
}

/** Mistakes after which a statement asks for more rows than the policy shows, and for no others. */
const LEAKS: readonly Fault[] = FAULTS.filter(({ name }) =>
  ['the row filter is dropped', 'the filters of a chain are ORed'].includes(name),
);

if (postgres === null) {
  t.test('the rows of row-level security', { skip: 'there is no native Postgres' }, async () => undefined);
} else {
  const admin = new Client({ connectionString: postgres.url });
  await admin.connect();
  await admin.query(
    `create schema whole; create schema rls; create schema second; grant usage on schema whole, rls, second to osl_reader`,
  );
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

  /** The tables of `world` in `second`, behind the policies that the product writes. */
  const stand = async (world: World): Promise<SecondLine> => {
    const line = secondLine(world, 'second');
    await admin.query(`begin; ${tablesSql(world, 'second')} ${line.script}; commit`);
    return line;
  };

  const differ = (text: string, sql: string, got: Answer, wanted: Answer, what: string): Error =>
    new Error([text, sql, asBytes(got), what, asBytes(wanted)].join('\n'));

  t.test('a question has the rows of row-level security', async (t) => {
    const counts = { asked: 0, verbatim: 0, failed: 0, empty: 0, faulty: 0, leaks: 0 };
    const started = Date.now();
    /** With the second line: the same, also where the first is broken in a way that shows rows without it. */
    const askBehind = async (line: SecondLine, question: Question, world: World, wanted: Answer) => {
      const plan = planOrRefusal(asAsked(question), line.catalog, line.access);
      if (plan === null) throw new Error(`a key is refused: ${asAsked(question)}`);
      const { sql, slots } = emit(plan);
      const got = await guarded.ask(sql, valuesFor(slots, world), line.rights);
      if (asBytes(got) !== asBytes(wanted))
        throw differ(asAsked(question), sql, got, wanted, 'behind the second line, but Postgres says');
      for (const fault of LEAKS) {
        const draft: Draft = fault.applied(plan);
        const faulty = emitUngoverned(draft.query, draft.slots);
        if (faulty.sql === sql) continue;
        const values = valuesFor(faulty.slots, world);
        const held = await guarded.ask(faulty.sql, values, line.rights);
        counts.faulty++;
        if (
          asBytes(await governed.ask(faulty.sql.replaceAll('second.', 'whole.'), values)) !== asBytes(wanted)
        )
          counts.leaks++;
        if (asBytes(held) !== asBytes(wanted))
          throw differ(asAsked(question), faulty.sql, held, wanted, `although ${fault.name}, Postgres says`);
      }
    };
    const trial = async (world: World, dice: Dice): Promise<void> => {
      await admin.query(
        `begin; ${tablesSql(world, 'whole')} ${tablesSql(world, 'rls')} ${policiesSql(world)} commit`,
      );
      const [catalog, access] = [catalogOf(world, 'whole'), accessOf(world)];
      const line = await stand(world);
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
        if (asBytes(got) !== asBytes(wanted))
          throw differ(`${asAsked(question)}\n${policiesSql(world)}`, sql, got, wanted, 'but Postgres says');
        await askBehind(line, question, world, wanted);
      }
    };
    await fc.assert(
      fc.asyncProperty(diceArbitrary, (dice) => trial(unmasked(randomWorld(dice, false)), dice)),
      { numRuns: Math.ceil(RUNS / PER_WORLD), seed: SEED, endOnFailure: true },
    );
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
    t.ok(counts.verbatim > counts.asked / 3, 'many texts are asked as they stand');
    t.ok(counts.empty < counts.asked / 2, 'most answers have rows');
    t.ok(counts.leaks > counts.asked / 10, 'many broken statements show hidden rows without the second line');
  });

  t.test('masked or not, the second line changes no answer', async (t) => {
    const counts = { asked: 0, failed: 0 };
    const trial = async (world: World, dice: Dice): Promise<void> => {
      await admin.query(`begin; ${tablesSql(world, 'whole')} commit`);
      await admin.query(world.tables.map((x) => `grant select on whole.${x.name} to osl_reader`).join(';'));
      const line = await stand(world);
      const whole = catalogOf(world, 'whole');
      for (let i = 0; i < PER_WORLD; i++) {
        const question = randomQuestion(world, dice);
        const plain = planOrRefusal(asAsked(question), whole, line.access);
        const plan = planOrRefusal(asAsked(question), line.catalog, line.access);
        if (plain === null || plan === null) continue;
        const [one, two] = [emit(plain), emit(plan)];
        const wanted = await governed.ask(one.sql, valuesFor(one.slots, world));
        const got = await guarded.ask(two.sql, valuesFor(two.slots, world), line.rights);
        counts.asked++;
        if (wanted.sqlstate !== null) counts.failed++;
        if (asBytes(got) !== asBytes(wanted))
          throw differ(asAsked(question), two.sql, got, wanted, 'but without the second line');
      }
    };
    await fc.assert(
      fc.asyncProperty(diceArbitrary, (dice) => trial(likeMasks(randomWorld(dice, false)), dice)),
      { numRuns: Math.ceil(RUNS / PER_WORLD / 2), seed: SEED, endOnFailure: true },
    );
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)}`);
    t.ok(counts.failed < counts.asked / 4, 'most questions have an answer');
  });
}
