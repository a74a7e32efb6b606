import type { EmittedSql, GovernedPlan } from 'osl-compiler';
import t from 'tap';
import { diceFrom } from '../proof/oracle/dice.js';
import { NO_NATIVE, startNativePostgres } from '../support/native-postgres.js';
import {
  Compiled,
  governedSql,
  PLANNERS,
  PlannerSession,
  rowsSql,
  TABLES_SQL,
  unguardedSql,
} from './compared.js';
import { Explorer, hasCoq, hasOcaml, NO_COQ } from './model.js';
import {
  type Query,
  querySql,
  queryWords,
  randomQuery,
  randomTables,
  type Table,
  tableWords,
} from './queries.js';

/**
 * The model of docs/formal against the compiler and Postgres: what Postgres makes of the governed SQL of a random
 * query, under several settings of its planner, is the outcome of a plan that the model allows. `OSL_FORMAL_RUNS`
 * queries, from `OSL_TEST_SEED`.
 */
const RUNS = Number(process.env['OSL_FORMAL_RUNS'] ?? 300);
const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_261_129);
const PER_WORLD = 40;
/** Numbers of plans to try until one has the outcome of Postgres. */
const BUDGETS = [24, 400, 6_000, 100_000, 1_000_000];

/** Reports every difference, not those of the first world that has one. */
const EVERY = process.env['OSL_FORMAL_EVERY'] !== undefined;

const worldWords = (tables: readonly Table[]): string =>
  `${tables.length} ${tables.map(tableWords).join(' ')}`;

t.setTimeout(3 * 3_600_000);

const toolsExist = hasCoq() && hasOcaml();
/** At night, Coq must be there. */
const isNight = process.env['OSL_FORMAL_RUNS'] !== undefined;
const postgres = toolsExist ? await startNativePostgres() : null;
if (postgres === null)
  t.test(
    'the compiler and Postgres do as the model says',
    { skip: isNight ? false : toolsExist ? NO_NATIVE : NO_COQ },
    async (t) => {
      t.fail(toolsExist ? NO_NATIVE : NO_COQ);
    },
  );
else {
  const clients = await Promise.all(PLANNERS.map((settings) => PlannerSession.open(postgres.url, settings)));
  const [owner] = clients;
  if (owner === undefined) throw new Error('no planner');
  const explorer = Explorer.build();
  t.teardown(async () => {
    explorer.close();
    for (const client of clients) await client.close();
    await postgres.stop();
  });
  await owner.run(TABLES_SQL);

  const enter = async (tables: readonly Table[], analyze: boolean): Promise<Compiled> => {
    await owner.run(`begin; ${rowsSql(tables)} commit`);
    if (analyze) await owner.run('analyze formal.t0, formal.t1, formal.t2');
    explorer.world(worldWords(tables));
    return new Compiled(tables);
  };

  /** Outcomes of Postgres that no plan of the model has; empty if they agree. */
  const difference = async (
    query: Query,
    seed: number,
    given: readonly string[],
    fenced: boolean,
    budgets = BUDGETS,
  ): Promise<readonly string[]> => {
    let missing = [...new Set(given)];
    for (const budget of budgets) {
      const found = await explorer.outcomes(queryWords(query), seed, budget, fenced);
      const failed = found.some((o) => o.startsWith('!'));
      missing = missing.filter((o) => !found.includes(o) && !(failed && found.includes(`~${o}`)));
      if (missing.length === 0) return [];
    }
    return missing;
  };

  t.test('the compiler and Postgres do as the model says', async (t) => {
    const counts = { queries: 0, refused: 0, guarded: 0, fenced: 0, failed: 0, differ: 0, rows: 0 };
    const differences: string[] = [];
    const started = Date.now();
    for (let world = 0; counts.queries < RUNS; world++) {
      const dice = diceFrom(SEED + world);
      const tables = randomTables(dice);
      const compiled = await enter(tables, dice.chance(0.3));
      const queries = dice
        .times(PER_WORLD, PER_WORLD, () => randomQuery(dice))
        .slice(0, RUNS - counts.queries);
      await Promise.all(
        queries.map(async (query, i) => {
          const plan = compiled.plan(query);
          if (plan === null) {
            counts.refused++;
            return;
          }
          const sql = governedSql(plan);
          const asked = clients.filter((_, at) => at % 2 === i % 2);
          const given = await Promise.all(asked.map((client) => client.outcome(sql)));
          const fenced = sql.sql.includes(' offset 0)');
          counts.queries++;
          if (sql.sql.includes('#shown')) counts.guarded++;
          if (fenced) counts.fenced++;
          if (given.some((o) => o.startsWith('!'))) counts.failed++;
          if (new Set(given).size > 1) counts.differ++;
          if (given.some((o) => o !== '' && !o.startsWith('!'))) counts.rows++;
          const missing = await difference(query, SEED + i, given, fenced);
          if (missing.length === 0) return;
          const words = queryWords(query);
          const found = await explorer.outcomes(words, SEED, 400, fenced);
          const texts = [`world ${SEED + world}`, querySql(query), sql.sql, JSON.stringify(sql.slots)];
          differences.push(
            [...texts, ...missing, 'but the model:', ...found, worldWords(tables), words].join('\n'),
          );
        }),
      );
      if (differences.length > 0 && !EVERY) break;
      if (EVERY && world % 250 === 249) t.comment(`${counts.queries} queries, ${differences.length} differ`);
    }
    for (const difference of differences) t.fail(difference);
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)} in ${Date.now() - started} ms`);
    t.ok(counts.failed > counts.queries / 20, 'some fail');
    t.ok(counts.guarded > counts.queries / 4, 'many are guarded');
  });

  /** Number of queries, up to the first that differs, if the SQL or the model's tables are changed. */
  const untilDifference = async (
    sqlOf: (plan: GovernedPlan) => EmittedSql,
    modelled: (table: Table) => Table,
  ): Promise<number | null> => {
    let queries = 0;
    for (let world = 0; world < 200; world++) {
      const dice = diceFrom(SEED + world);
      const tables = randomTables(dice);
      const compiled = await enter(tables, false);
      explorer.world(worldWords(tables.map(modelled)));
      for (let i = 0; i < PER_WORLD; i++) {
        const query = randomQuery(dice);
        const plan = compiled.plan(query);
        if (plan === null) continue;
        const given = await Promise.all(clients.map((client) => client.outcome(sqlOf(plan))));
        queries++;
        if ((await difference(query, SEED + i, given, false, [400])).length > 0) return queries;
      }
    }
    return null;
  };

  t.test('SQL without its guards is told from the model', async (t) => {
    const queries = await untilDifference(unguardedSql, (table) => table);
    t.comment(`after ${queries} queries`);
    t.not(queries, null);
  });

  t.test('a model without the row filters is told from Postgres', async (t) => {
    const queries = await untilDifference(governedSql, (table) => ({ ...table, filters: [null] }));
    t.comment(`after ${queries} queries`);
    t.not(queries, null);
  });
}
