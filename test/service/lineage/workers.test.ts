import { writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { ACCOUNTS, ACCOUNTS_MANIFEST, files, openStore } from '../operations/store.js';
import { asked, type Place, run, served, tokenFor } from '../operations/support.js';
import { lineageYaml, SECRET } from './endpoint.js';
import { memberIn } from './openlineage-schema.js';
import { answering, runsIn, startReceiver } from './receiver.js';

/** Lineage of `osl serve --workers 2`: of each worker's chain every question is told of once, whatever becomes of it. */

t.setTimeout(600_000);

const POLICY = `version: 1
tenant: demo
subjects:
  user:analyst: { ceiling: [analyst] }
roles:
  analyst: { grants: [{ on: account, columns: [id, name] }] }
masks: {}
limits: { query: 100000 }
`;

const store = await openStore(t, 'lineage of workers', ACCOUNTS);
if (store !== null) {
  const { postgres } = store;

  t.test('every question of both workers is told of once, though one is killed', async (t) => {
    const receiver = await startReceiver();
    t.teardown(() => receiver.close());
    const { place, lineage } = filesWith(receiver.url);
    const env = {
      STORE_URL: postgres.readerUrl,
      OSL_WORKERS: '2',
      OSL_LINEAGE: lineage,
      OSL_TEST_LINEAGE_SECRET: SECRET,
    };
    receiver.behave(answering(500));
    const server = await served(t, place, env);
    await questions(server, place, 30);
    const [, second = 0] = workersOf(server);
    process.kill(second, 'SIGKILL');
    await server.said('a worker was replaced');
    await questions(server, place, 30);
    t.ok(
      (await Promise.all([1, 2].map((n) => decisions(place, n)))).every((n) => n > 0),
      'both were asked',
    );
    t.match(await osl(['lineage', 'pending', '--json', '--data-dir', place.dataDir]), { code: 0 });
    t.match(await server.signal('SIGTERM'), { code: 0 });

    // One process goes on: it tells what the workers had not told.
    receiver.behave(answering(200));
    const alone = await served(t, place, { ...env, OSL_WORKERS: '1' });
    const wanted = (await decisions(place, 1)) + (await decisions(place, 2));
    t.ok(wanted >= 60, `${wanted} questions are on record`);
    const told = (): readonly string[] => [
      ...new Map(receiver.received.map((r) => [r.headers['webhook-id'], r.body])).values(),
    ];
    const counted = (): number =>
      told()
        .map(runsIn)
        .filter((n) => !Number.isNaN(n))
        .reduce((a, b) => a + b, 0);
    while (counted() < wanted) await sleep(100);
    t.match(await alone.signal('SIGTERM'), { code: 0 });
    t.equal(counted(), wanted, 'as many as are on record');
    const announced = told().filter(
      (body) => memberIn(JSON.parse(body), 'dataset', 'name') === 'osl.entities.account',
    );
    t.ok(announced.length >= 1 && announced.length <= 2, `announced ${announced.length} times`);
  });
}

function filesWith(url: string): { readonly place: Place; readonly lineage: string } {
  const place = files(ACCOUNTS_MANIFEST, POLICY);
  const lineage = join(dirname(place.policy), 'lineage.yaml');
  writeFileSync(lineage, `${lineageYaml(url)}window_seconds: 1\n`);
  return { place, lineage };
}

async function questions(server: Server, { dataDir }: Place, count: number): Promise<void> {
  const authorization = `Bearer ${await tokenFor(dataDir)}`;
  const ask = () =>
    asked(server, '/osl/query', { osql: 'select name from osl.entities.account' }, { authorization });
  for (const { status } of await Promise.all(Array.from({ length: count }, ask)))
    if (status !== 200) throw new Error(`status ${status}`);
}

/** Decisions of worker `n` whose lineage is to be told. */
async function decisions({ dataDir }: Place, n: number): Promise<number> {
  let count = 0;
  for await (const record of readRecords(join(dataDir, 'audit', `worker-${n}`)))
    if (record.kind === 'decision' && record.plan !== undefined) count++;
  return count;
}

/** The processes of the workers, in their order. */
function workersOf(server: Server): readonly number[] {
  const children = run('pgrep', '-P', String(server.record()['pid'])) ?? '';
  return children.trim().split('\n').map(Number);
}
