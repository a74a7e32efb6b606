import { ready } from 'osl-compiler';
import { Client } from 'pg';
import t from 'tap';
import { accessWith, CATALOG, tables } from '../../../bench/barrier/data.js';
import { QUESTIONS } from '../../../bench/barrier/questions.js';
import { preparedFor, scansOf } from '../../../bench/barrier/statements.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';

/**
 * Under a row filter Postgres reads the tables of each question of the bench as it does without policy: by the same
 * indexes, in the same order. What an index alone answers without policy may look up the row for the filter.
 */
const ROWS = 20_000;
t.setTimeout(120_000);

/** Where it cannot, and why. */
const OTHERWISE: ReadonlyMap<string, string> = new Map([
  ['barrier.index_only', 'the index has no `region`, so each row is looked up'],
]);

await ready();
const postgres = await startNativePostgres();
if (postgres === null) t.test('plans under policy', { skip: NO_NATIVE }, async () => undefined);
else
  t.test('plans under policy are those without', async (t) => {
    const client = new Client({ connectionString: postgres.url });
    await client.connect();
    t.teardown(async () => {
      await client.end();
      await postgres.stop();
    });
    for (const script of tables(ROWS)) await client.query(script);
    const plan = { rows: ROWS, asks: 1 };
    for (const question of QUESTIONS) {
      const scans = async (rows: string | null): Promise<string> => {
        const to = { name: 'plan', catalog: CATALOG, access: accessWith(rows) };
        return (await scansOf(client, preparedFor(question, plan, to))).replaceAll('Index Only', 'Index');
      };
      const [governed, open] = [await scans("region = 'eu'"), await scans(null)];
      const reason = OTHERWISE.get(question.id);
      if (reason === undefined) t.equal(governed, open, `${question.id}: ${governed}`);
      else t.not(governed, open, `${question.id}: ${reason}`);
    }
  });
