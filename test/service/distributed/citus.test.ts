import t from 'tap';
import { type Citus, NO_CITUS, startCitus } from '../../support/citus.js';
import { osl } from '../../tools/cli/support.js';
import { asked, fileArgs } from '../operations/support.js';
import { fillShop, inSchema, QUESTIONS, ROLES, shopFiles } from './citus-shop.js';
import { explainedOnCitus } from './explained.js';
import { type Answered, connected, serve, token } from './served.js';

/**
 * A gateway over a Citus cluster of two workers: answers are those of plain tables, hidden rows change none of them,
 * plans keep Citus' router, push-down and partial aggregates, and refusals are explained.
 */
t.setTimeout(300_000);

/** What Citus refuses over several shards, and the reason that the caller reads. */
const REFUSED: ReadonlyMap<string, RegExp> = new Map([
  ['a correlated scalar by something else', /combined on other columns than the distribution column/],
  ['WITH RECURSIVE', /WITH RECURSIVE reads rows of several shards/],
  ['ROLLUP', /GROUPING SETS, ROLLUP, CUBE and GROUPING need rows/],
  ['GROUPING SETS', /GROUPING SETS, ROLLUP, CUBE and GROUPING need rows/],
  ['a subquery as LIMIT', /LIMIT or OFFSET is a subquery/],
  ['a reference table, and rows of each', /correlated subquery reads distributed rows/],
  ['a lateral outer join of a reference table', /outer LATERAL join/],
  ['lateral of a reference table', /a subquery needs rows of several shards/],
  ['TABLESAMPLE of one tenant', /TABLESAMPLE of a single shard/],
  ['a cross join', /a table is joined of which no column is read/],
]);

const SHARDS = 8;
const cluster = await startCitus(2, [`citus.shard_count=${SHARDS}`, 'citus.enable_stat_counters=on']);
if (cluster === null) t.test('over Citus', { skip: NO_CITUS }, async () => undefined);
else {
  t.teardown(() => cluster.stop());
  await fillShop(cluster);
  const where = shopFiles();
  const server = await serve(t, where, cluster);
  const as = (role: string): Promise<(text: string) => Promise<Answered>> =>
    connected(t, server, where, [`user:${role}`], role);
  const plan = async (role: string, text: string): Promise<string> =>
    explainedOnCitus(
      server,
      await token(where, [role === 'tenants' ? 'user:admin-tenants' : 'user:admin'], role, true),
      inSchema(text, 'parts'),
      cluster.readerUrl,
    );
  const questionOf = (what: string): string => {
    const text = QUESTIONS.get(what);
    if (text === undefined) throw new Error(`there is no question "${what}"`);
    return text;
  };

  await t.test('a caller is answered as over plain tables, or told what Citus refuses', async (t) => {
    for (const role of ROLES) {
      const ask = await as(role);
      const refused: string[] = [];
      for (const [what, text] of QUESTIONS) {
        const [got, wanted] = [await ask(inSchema(text, 'parts')), await ask(inSchema(text, 'one'))];
        if (role !== 'tenant' && REFUSED.has(what) && wanted.code === null) {
          t.match(got, { code: '0A000', rows: [], message: REFUSED.get(what) }, `${role}: ${what}`);
          refused.push(what);
        } else t.same(sorted(got), sorted(wanted), `${role}: ${what}`);
        if (wanted.code === null) t.not(wanted.rows.length, 0, `${role}: ${what} has rows`);
        else t.ok(isRefusedBefore(what), `${role}: ${what}: ${wanted.message}`);
      }
      const most = [...REFUSED.keys()].filter((what) => role !== 'tenants' || !isRefusedBefore(what));
      t.same(refused.toSorted(), role === 'tenant' ? [] : most.toSorted(), role);
    }
  });

  await t.test('rows and cells that a caller may not see change nothing', async (t) => {
    const own = await as('tenant');
    const all = await as('analyst');
    let differing = 0;
    for (const [what, text] of QUESTIONS) {
      const [one, other] = [inSchema(text, 'parts'), inSchema(text, 'twin')];
      const [got, twin] = [sorted(await own(one)), sorted(await own(other))];
      t.same(got, twin, what);
      const [open, changed] = [sorted(await all(one)), sorted(await all(other))];
      if (JSON.stringify(open) !== JSON.stringify(changed)) differing += 1;
    }
    t.ok(differing > 20, `${differing} answers differ for a caller who sees all`);
  });

  await t.test('every question of one tenant goes to one shard', async (t) => {
    const ask = await as('tenant');
    // So that the statements before are counted.
    const before = await executions(cluster);
    for (const text of QUESTIONS.values()) await ask(inSchema(text, 'parts'));
    const after = await executions(cluster);
    t.equal(after.multi - before.multi, 0, 'none read several shards');
    const sent = [...QUESTIONS.keys()].filter((what) => !isRefusedBefore(what));
    t.equal(after.single - before.single, sent.length);
    for (const [what, text] of QUESTIONS) {
      if (isRefusedBefore(what)) continue;
      const tasks = (await plan('tenant', text)).match(/Task Count: \d+/g);
      t.same(tasks, ['Task Count: 1'], what);
    }
  });

  await t.test('a plan without values is refused with the reason', async (t) => {
    const body = { osql: 'select id from orders where id = 61', explain: true, upstream: 'plan' };
    const authorization = `Bearer ${await token(where, ['user:admin'], 'analyst', true)}`;
    const told = await asked(server, '/osl/query', body, { authorization });
    t.match(told, { status: 400, body: /E0531.*without the values of parameters/ });
  });

  await t.test('several tenants go to their shards and no others', async (t) => {
    const told = await plan('tenants', questionOf('by something else'));
    const tasks = Number(/Task Count: (\d+)/.exec(told)?.[1]);
    t.ok(tasks > 1 && tasks <= 3, `${tasks} shards for three tenants`);
  });

  await t.test('joins by the distribution column are pushed down, to both workers', async (t) => {
    for (const what of [
      'a join by tenant',
      'a join of three',
      'a left join by tenant',
      'a full join',
      'a semi-join',
      'an anti-join',
      'a correlated scalar',
      'lateral',
      'a self-join',
      'a join with a reference table',
    ]) {
      const told = await plan('analyst', questionOf(what));
      t.same(told.match(/Task Count: \d+/g), [`Task Count: ${SHARDS}`], `${what}: one step over all shards`);
      t.notMatch(told, 'Distributed Subplan', what);
      t.match(
        told.slice(told.indexOf('->  Task')),
        /Join|Nested Loop|SubPlan/,
        `${what}: joined by the workers`,
      );
      for (const { port } of cluster.workers) t.match(told, `port=${port} `, `${what}: tasks on each worker`);
    }
  });

  await t.test('workers aggregate their part', async (t) => {
    for (const what of [
      'in all',
      'by tenant',
      'by something else',
      'a filter of an aggregate',
      'a join of three',
    ]) {
      const told = await plan('analyst', questionOf(what));
      const tasks = told.split('->  Task\n').slice(1);
      t.equal(tasks.length, SHARDS, what);
      for (const task of tasks) t.match(task, /Aggregate/, `${what}: by the workers`);
    }
    const whole = await plan('analyst', questionOf('by something else'));
    t.match(whole.slice(0, whole.indexOf('Citus Adaptive')), /Aggregate/, 'their parts are combined');
  });

  await t.test('doctor names the queries of the last day that were not limited to a shard', async (t) => {
    await (await as('status'))('select count(*) from orders');
    const { stdout } = await osl(['doctor', ...fileArgs(where)], { env: { STORE_URL: cluster.readerUrl } });
    const named = (cause: string): string =>
      new RegExp(`^warn .*of the last day: ${cause}.*: (.*)$`, 'm').exec(stdout)?.[1] ?? '';
    const open = named('these read entities without any row filter');
    t.match(open, /orders by user:analyst \(\d+\)/);
    t.notMatch(open, /user:(tenant|tenants|status) /, 'callers with a filter');
    t.match(named('these have row filters on other columns'), /^orders by user:status \(\d+\)$/);
    t.match(named('the row filter selects several values'), /orders by user:tenants \(\d+\)/);
    t.notMatch(stdout, /by user:tenant \(/, 'one tenant');
    t.notMatch(open, /nation|_one/, 'reference tables, and tables of the coordinator');
    t.match(stdout, /^ok .*\d{3,} of \d{3,} queries counted by Citus read several shards$/m);
  });
}

/** True if the gateway sends nothing: TABLESAMPLE under a row filter, and WITH TIES on Citus. */
function isRefusedBefore(what: string): boolean {
  return /^(TABLESAMPLE|WITH TIES)/.test(what);
}

/** SELECTs since the cluster's start, by the number of shards that they read. */
async function executions({
  coordinator,
}: Citus): Promise<{ readonly single: number; readonly multi: number }> {
  const [row] = await coordinator.query(
    `select query_execution_single_shard as single, query_execution_multi_shard as multi
     from citus_stat_counters where name = current_database()`,
  );
  return { single: Number(row?.['single']), multi: Number(row?.['multi']) };
}

function sorted({ code, rows, message }: Answered): Answered {
  return { code, rows: rows.toSorted(), message: message.replaceAll(/_(?:one|twin)\b/g, '') };
}
