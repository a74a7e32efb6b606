import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import t from 'tap';
import { watchIndex } from '../../../cli/commands/content.js';
import { sql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { IndexSignals } from '../../../src/service/indexing/index-content.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import { manifestText } from '../../support/model-text.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { BIN, osl, temporary } from './support.js';

/** `osl index --watch`: at intervals, and when a database tells of a change. */

t.setTimeout(600_000);

const MANIFEST = manifestText(
  'press',
  {
    'public.note': 'id text, article text, body text',
  },
  `entities:
  article: { source: db.public.note, primary_key: [article], columns: [article] }
facets:
  notes: { source: db.public.note, entity: article, entity_key: article, document_id: id, text: body, versions: { raw: {} }, retrieval: { max_top_k: 5 } }
`,
);
const POLICY =
  'version: 1\ntenant: press\nsubjects: {}\nroles: {}\nmasks: {}\nlimits: { query: 1, sample: 1, schema: 1, authoring: 1, catalog: 1 }\n';

t.test('rounds at intervals, until Ctrl-C', async (t) => {
  const dir = temporary();
  const dataDir = join(dir, 'data');
  await emptyDatabases(dataDir, MANIFEST);
  const engine = await openEngine({ kind: 'pglite', dataDir: join(dataDir, 'pg', 'db') });
  await engine.system.script(
    sql`create table note (id text, article text, body text); insert into note values ('n1', 'a1', 'a text about zebras')`,
  );
  await engine.close();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), POLICY);
  const args = ['index', '--watch', '--every', '1', '--data-dir', dataDir];
  const child = spawn(process.execPath, [BIN, ...args], { cwd: dir });
  t.teardown(() => child.kill('SIGKILL'));
  let [out, err] = ['', ''];
  child.stdout.on('data', (bytes: Buffer) => {
    out += bytes;
  });
  child.stderr.on('data', (bytes: Buffer) => {
    err += bytes;
  });
  const ended = once(child, 'exit');
  const rounds = (): number => out.match(/^notes \(raw\): 1 documents, 1 passages/gm)?.length ?? 0;
  while (rounds() < 3 && child.exitCode === null) await sleep(50);
  t.match(out, /1 added, 0 changed[\s\S]*0 added, 0 changed/, err);
  child.kill('SIGINT');
  t.same(await ended, [0, null], err);
  const status = await osl(['index', '--status', '--data-dir', dataDir], { cwd: dir });
  t.match(
    status.stdout,
    /^notes \(raw\): 1 documents, 1 passages, read \d{4}-\S+Z; 0 rows behind: 0 new, 0 changed, 0 gone\n$/,
    status.stderr,
  );
});

t.test('what fails at the first round fails the command', async (t) => {
  const dir = temporary();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), POLICY);
  const run = await osl(['index', '--watch', '--data-dir', join(dir, 'data')], { cwd: dir });
  t.equal(run.code, 1, run.stderr);
  t.match(run.stderr, /note/);
});

t.test('a database tells which facet changed, or that any did', async (t) => {
  const postgres = await startNativePostgres();
  if (postgres === null) throw new Error('a native Postgres is needed');
  t.teardown(() => postgres.stop());
  const told: string[] = [];
  const tell = (message: string): void => void told.push(message);
  const signals = new IndexSignals([postgres.url, 'postgres://127.0.0.1:1/none'], {
    info: tell,
    warn: tell,
    error: tell,
  });
  t.teardown(() => signals.close());
  const stop = new AbortController();
  await signals.listen();
  t.equal(told.length, 1, 'who cannot be heard is told of');
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  t.teardown(() => client.end());

  const heard = signals.next(60_000, stop.signal);
  await client.query("notify osl_index, 'readme'");
  t.same(await heard, ['readme']);
  await client.query('notify osl_index; notify osl_index, $$readme$$; notify other, $$x$$');
  await sleep(50);
  t.same([...(await signals.next(60_000, stop.signal))].sort(), ['', 'readme'], 'heard between two rounds');
  t.same(await signals.next(20, stop.signal), [], 'nothing in time');

  await client.query(
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'osl index' and datname = current_database()",
  );
  await sleep(50);
  await signals.listen();
  const again = signals.next(60_000, stop.signal);
  await client.query('notify osl_index');
  t.same(await again, [''], 'heard again after its connection was lost');

  const last = signals.next(60_000, stop.signal);
  stop.abort();
  t.same(await last, [], 'what is stopped waits no longer');
});

const SILENT = { info: () => undefined, warn: () => undefined, error: () => undefined };

t.test('turns come at whole intervals, however long a round takes', async (t) => {
  const stop = new AbortController();
  const turns: number[] = [];
  const round = async (names: readonly string[], readAt: Date | null): Promise<void> => {
    t.same(names, []);
    turns.push(readAt?.getTime() ?? Number.NaN);
    if (turns.length === 3) stop.abort();
    else await sleep(1_100);
  };
  await watchIndex({ round, names: ['notes'], urls: [], everySeconds: 1, signal: stop.signal, log: SILENT });
  const [first = Number.NaN] = turns;
  t.same(
    turns.map((at) => (at - first) % 1_000),
    [0, 0, 0],
  );
  t.ok(
    turns.every((at, i) => i === 0 || at > (turns[i - 1] ?? at)),
    'none twice',
  );
});

t.test('a round that a change brought about is no turn', async (t) => {
  const postgres = await startNativePostgres();
  if (postgres === null) throw new Error('a native Postgres is needed');
  t.teardown(() => postgres.stop());
  const client = new Client({ connectionString: postgres.url });
  await client.connect();
  t.teardown(() => client.end());
  const stop = new AbortController();
  const rounds: (readonly [readonly string[], boolean])[] = [];
  const next = ["notify osl_index, 'notes'", 'notify osl_index'];
  const round = async (names: readonly string[], readAt: Date | null): Promise<void> => {
    rounds.push([names, readAt !== null]);
    const change = next.shift();
    if (change === undefined) stop.abort();
    else await client.query(change);
  };
  const { signal } = stop;
  await watchIndex({
    round,
    names: ['notes'],
    urls: [postgres.url],
    everySeconds: 86_400,
    signal,
    log: SILENT,
  });
  t.same(rounds, [
    [[], true],
    [['notes'], false],
    [[], false],
  ]);
});
