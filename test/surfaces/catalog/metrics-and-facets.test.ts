import type pg from 'pg';
import tap, { test } from 'tap';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { IMAGE_DIR, openBase, openWorld, outcome } from './support/world.js';

tap.setTimeout(600_000);

const METRICS = `select table_name, column_name, data_type from information_schema.columns
  where table_schema = 'metrics' order by 1, 2`;
const FACETS = `select proname, pg_get_function_result(oid), obj_description(oid, 'pg_proc') from pg_catalog.pg_proc
  where pronamespace = 'entities'::regnamespace order by 1`;

async function rows(client: pg.Client, text: string): Promise<readonly unknown[][]> {
  return (await client.query<unknown[]>({ text, rowMode: 'array' })).rows;
}

test('each caller finds the metrics and facets that are theirs', async (t) => {
  const base = await openBase();
  t.teardown(() => base.close());
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const clerk = await world.connect('clerk');
  const chief = await world.connect('chief');
  t.same(await rows(clerk, METRICS), [['person_metrics', 'people', 'bigint']]);
  t.same(await rows(chief, METRICS), [
    ['person_metrics', 'people', 'bigint'],
    ['salary_hidden_metrics', 'bonus_hidden', 'numeric'],
  ]);
  t.same(await rows(clerk, FACETS), [
    [
      'diary',
      'TABLE(text text, score double precision, cite jsonb, redacted_fields text[], person_id integer, ' +
        'query text, written timestamp with time zone)',
      `What persons wrote; "quoted" and O'Brien \\ too. Ask RETRIEVE(facet => 'diary', query => '…', top_k => 5).`,
    ],
  ]);
  t.same(
    (await rows(chief, FACETS)).map(([name]) => name),
    ['letters_hidden'],
  );
  const u0 = await world.connect('u0');
  t.same(await rows(u0, METRICS), []);
  t.same(await rows(u0, FACETS), []);
  t.same(await rows(u0, `select nspname from pg_catalog.pg_namespace where nspname = 'metrics'`), []);
});

test('tools that select all columns by name meet no metric', async (t) => {
  const base = await openBase();
  t.teardown(() => base.close());
  const world = await openWorld(base);
  t.teardown(() => world.close());
  const clerk = await world.connect('clerk');
  const columns = `select attname from pg_catalog.pg_attribute where attrelid = 'person'::regclass and attnum > 0`;
  t.notMatch(JSON.stringify(await rows(clerk, columns)), 'people');
  t.match(await outcome(clerk, `select to_regclass('metrics.person_metrics')`), 'metrics.person_metrics');
  t.match(
    await outcome(clerk, 'select people from metrics.person_metrics'),
    /"42P01".*`metrics.person_metrics` is not declared.*perhaps you meant `measure\(…\) from person`/s,
  );
  t.match(
    await outcome(clerk, `select * from diary('x', 5)`),
    /"0A000".*SELECT … FROM RETRIEVE\(facet => 'diary'/,
  );
});

test('what is listed is what MEASURE and RETRIEVE give', async (t) => {
  const shop = await startTestService({ embedded: true }); // it has pgvector
  t.teardown(() => shop.close());
  const { content } = settingsFrom({}, '/');
  await indexContent(shop.service.model().manifest, shop.open.databases, content, [], () => undefined);
  const catalogs = new Catalogs({ dir: IMAGE_DIR });
  t.teardown(() => catalogs.close());
  const frontend = createPgFrontend(shop.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  t.teardown(() => frontend.stop());
  const user = 'user:ann';
  const client = await connectPg({ port, user, password: await shop.token(user) });
  t.teardown(() => client.end());
  const typeOf = async (oid: number): Promise<unknown> =>
    (await rows(client, `select format_type(${oid}, -1)`))[0]?.[0];
  const metrics = await rows(client, METRICS);
  t.ok(metrics.length > 0);
  for (const [view, metric, type] of metrics) {
    const entity = String(view).replace(/_metrics$/, '');
    for (const call of ['measure', 'sum']) {
      const { fields } = await client.query(`select ${call}("${metric}") from entities."${entity}"`);
      t.equal(await typeOf(fields[0]?.dataTypeID ?? 0), type, `${call}(${metric})`);
    }
  }
  const facets = await rows(client, FACETS);
  t.ok(facets.length > 0);
  for (const [facet, result] of facets) {
    const { fields } = await client.query(
      `select * from retrieve(facet => '${facet}', query => 'tea', top_k => 1)`,
    );
    const columns = await Promise.all(fields.map(async (f) => `${f.name} ${await typeOf(f.dataTypeID)}`));
    t.equal(`TABLE(${columns.join(', ')})`, result, `${facet}`);
  }
});
