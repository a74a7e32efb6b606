import { Session } from 'node:inspector/promises';
import { setTimeout as pause } from 'node:timers/promises';
import { createPgFrontend } from '../src/surfaces/pg/index.js';
import { articlesWorld } from './language/forms/articles.js';
import { startForms } from './language/forms/fixture.js';
import { type RestFixture, startRest } from './surfaces/rest/fixture.js';
import { query } from './wire/support/bytes.js';
import { Client } from './wire/support/client.js';

/*
 * Counts the product's files whose lines run for one request of each kind, in a process that has answered others:
 * `OSL_TEST_POSTGRES_URL=… node dist/test/walks.js`, with names of requests to list their files. Threads are not counted.
 */

/** Does `work` several times. @param work gets the number of the time, from 0 */
type Walk = (work: (time: number) => Promise<unknown>) => Promise<ReadonlySet<string>>;

const PRODUCT = /\/dist\/((?:src|wire|policy|audit)\/.+)\.js$|\/(compiler\/)dist\/(.+)\.js$/;

async function startWalks(): Promise<Walk> {
  const session = new Session();
  session.connect();
  await session.post('Profiler.enable');
  await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false });
  const taken = async (): Promise<ReadonlySet<string>> => {
    const { result } = await session.post('Profiler.takePreciseCoverage');
    const files = result.flatMap(({ url, functions }) => {
      const [, gateway, compiler = '', rest = ''] = PRODUCT.exec(url) ?? [];
      const file = gateway ?? `${compiler}${rest}`;
      // The first function is the file itself, which runs when it is loaded.
      const ran = functions.slice(1).some(({ ranges }) => ranges.some(({ count }) => count > 0));
      return ran && file !== '' ? [file] : [];
    });
    return new Set(files);
  };
  const once = async (work: () => Promise<unknown>): Promise<ReadonlySet<string>> => {
    await pause(SETTLED_MS);
    await taken();
    await work();
    await pause(SETTLED_MS);
    return taken();
  };
  return async (work) => {
    let files = await once(() => work(0));
    for (let time = 1; time < TIMES; time++) {
      const again = await once(() => work(time));
      files = new Set([...files].filter((file) => again.has(file)));
    }
    return files;
  };
}

/** Until the outcome is on record, and whatever runs beside requests has run. */
const SETTLED_MS = 300;
/** A file counts if it ran each of these times: what runs beside requests now and then, such as a checkpoint, does not. */
const TIMES = 5;
/** A question is asked so often until it is one of a known shape. */
const OFTEN = 100;

async function onShop(walk: Walk): Promise<Record<string, ReadonlySet<string>>> {
  const rest = await startRest();
  const frontend = createPgFrontend(rest.test.service);
  const { port } = await frontend.listen(0, '127.0.0.1');
  const client = await Client.login(port, 'user:ada', await rest.test.token('user:ada'));
  try {
    const wire = (text: string) => client.ask(query(text));
    const http = (osql: string) => rest.ask('user:ada', { osql });
    for (const ask of [wire, http])
      for (let i = 0; i < OFTEN; i++) await ask(`select id, label from product where id = ${i} order by id`);
    const fast = frontend.fastQuestions;
    const known = await walk(() => wire('select id, label from product where id = 7 order by id'));
    if (frontend.fastQuestions === fast) throw new Error('nothing goes fast: it needs a native Postgres');
    return {
      'wire with login': await walk(async (time) => {
        const other = await Client.login(port, 'user:ada', await rest.test.token('user:ada'));
        await other.ask(query(`select label${otherColumns(time)} from product where id <= 3 and id <> 4`));
        other.end();
      }),
      wire: await walk((time) =>
        wire(`select label${otherColumns(time)} from product where id > 1 order by label`),
      ),
      known,
      rest: await walk((time) =>
        http(`select label${otherColumns(time)} from product where id > 2 and id < 9 order by label`),
      ),
      publish: await publish(rest, walk),
    };
  } finally {
    client.end();
    await frontend.stop(1_000);
    await rest.close();
  }
}

/** More output columns each time, so that no text is known. */
function otherColumns(time: number): string {
  return ', id'.repeat(time);
}

async function publish(rest: RestFixture, walk: Walk): Promise<ReadonlySet<string>> {
  const metrics = (name: string) => ({ metrics: { [name]: { entity: 'order', expression: 'count(*)' } } });
  const post = async (name: string): Promise<void> => {
    const token = await rest.test.token('user:root', { roles: ['TENANT_ADMIN'] });
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const body = { base_version: rest.test.service.model().manifest.version, fragment: metrics(name) };
    const reply = await rest.send('/osl/objects', { method: 'POST', headers, body });
    if (reply.status !== 201 && reply.status !== 200) throw new Error(reply.text);
  };
  await post('orders');
  return walk((time) => post(`bookings_${time}`));
}

async function onArticles(walk: Walk): Promise<ReadonlySet<string>> {
  const world = articlesWorld();
  const forms = await startForms(world);
  const ask = async (words: string): Promise<void> => {
    const { status, message } = await forms.ask(
      'user:ann',
      `select text from RETRIEVE(facet => 'notes', query => '${words}', top_k => 3)`,
    );
    if (status !== 200) throw new Error(message);
  };
  try {
    for (const words of ['harbour', 'stone bridge', 'market']) await ask(words);
    return await walk((time) => ask(WORDS[time] ?? ''));
  } finally {
    await forms.close();
  }
}

const WORDS = ['river', 'old mill', 'tower', 'garden', 'winter'];

const walk = await startWalks();
const walks = { ...(await onShop(walk)), retrieve: await onArticles(walk) };
for (const [name, files] of Object.entries(walks)) {
  process.stdout.write(`${name} ${files.size}\n`);
  if (process.argv.includes(name))
    process.stdout.write(
      `${[...files]
        .sort()
        .map((file) => `  ${file}\n`)
        .join('')}`,
    );
}
