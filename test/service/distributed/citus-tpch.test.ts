import t from 'tap';
import { POLICIES } from '../../../bench/tpch/policies.js';
import { QUESTIONS } from '../../../bench/tpch/questions.js';
import { NO_CITUS, startCitus } from '../../support/citus.js';
import { tpchOnCitus } from './citus-tpch.js';

/**
 * TPC-H over Citus: orders and line items are distributed by the order, the other tables are reference tables. Each
 * answer under each policy equals that of a statement with the policy written by hand, over plain tables of the same
 * rows; a query is refused where Citus itself refuses that statement.
 */
t.setTimeout(300_000);

const SCALE = Number(process.env['OSL_CITUS_TPCH_SCALE'] ?? 0.002);
/** Queries with a correlated subquery over other columns than the distribution column. */
const REFUSED = ['q17', 'q20', 'q22'];

const cluster = await startCitus(2, ['citus.shard_count=4']);
if (cluster === null) t.test("TPC-H's queries over Citus", { skip: NO_CITUS }, async () => undefined);
else {
  t.teardown(() => cluster.stop());
  const { gateway, plain, citus } = await tpchOnCitus(t, cluster, SCALE);
  for (const policy of POLICIES)
    await t.test(`TPC-H's queries over Citus, policy ${policy}`, async (t) => {
      const ask = await gateway(policy);
      const refused: string[] = [];
      let rows = 0;
      for (const question of QUESTIONS) {
        const [got, wanted, direct] = [
          await ask(question),
          await plain(policy, question),
          await citus(policy, question),
        ];
        t.equal(wanted.code, null, question.id);
        t.equal(got.code, direct.code, `${question.id}: refused here if refused there`);
        if (got.code === null) t.same(got.rows, wanted.rows, question.id);
        else refused.push(question.id);
        if (got.code !== null) t.match(got.message, /Citus cannot run over distributed tables/, question.id);
        rows += got.rows.length;
      }
      t.same(refused, REFUSED);
      t.ok(rows > 90, `${rows} rows`);
    });
}
