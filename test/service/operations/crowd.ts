import { mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import t from 'tap';
import { peakResidentMib } from '../../../bench/support/child.js';
import { type Gateway, startGateway } from '../../../bench/support/gateway.js';
import { accounts, withPostgres } from '../../../bench/support/postgres.js';
import { connectPg } from '../../support/pg-client.js';

/**
 * Fifty callers who ask for large values, in a container of 512 MiB: nobody else's question fails, and the process stays
 * below. A step of the nightly run: it takes half a minute of both processors.
 */

const LIMIT_MIB = 512;
const CALLERS = 50;
const ROUNDS = 3;
/** Bytes: below the limit of a row, and far above. */
const SIZES = [15_500_000, 40_000_000];

const some = (value: string): string =>
  `select ${value} from (select id from account order by id limit 50) a`;
/** What makes a value, or a row, of about `size` bytes. */
const TEXTS: readonly ((size: number) => string)[] = [
  (size) => `select repeat('x', ${size}) from account where id = 1`,
  (size) => `select lpad('x', ${size}, 'yz') from account where id = 1`,
  (size) => `select replace(repeat('x', ${size / 10}), 'x', '0123456789') from account where id = 1`,
  (size) => `select concat(repeat('x', ${size / 2}), repeat(chr(1), ${size / 2})) from account where id = 1`,
  (size) => some(`array_agg(repeat('"', ${size / 100}))`),
  (size) => some(`jsonb_agg(repeat('x', ${size / 50}))`),
  (size) => some(`string_agg(repeat('x', ${size / 50}), ',')`),
  (size) => `select ${Array.from({ length: 64 }, (_, i) => `repeat('x', ${Math.floor(size / 64)}) as c${i}`)}
    from account where id = 1`,
];
const FORMATS = ['application/json', 'application/x-ndjson', 'application/vnd.apache.arrow.stream'];

t.setTimeout(600_000);

t.test('fifty callers of large values in 512 MiB', (t) =>
  withPostgres(accounts(1_000), async (postgres) => {
    const dir = mkdtempSync(join(tmpdir(), 'osl-crowd-'));
    const policyFile = join(dir, 'policy.yaml');
    writeFileSync(policyFile, policyOf('bench/hostile/policy.yaml'));
    const group = memoryGroup();
    t.comment(group === null ? 'no cgroup can be made here: the limit is told by settings' : `in ${group}`);
    const serve = `exec ${process.execPath} bin/osl.js serve --json`;
    const gateway = await startGateway({
      manifestFile: 'bench/hostile/manifest.yaml',
      policyFile,
      postgres,
      // Sessions and time for all: how these are shared is another test's.
      environment: {
        OSL_POOL_SIZE: `${CALLERS + 10}`,
        OSL_STATEMENT_TIMEOUT_MS: '300000',
        ...(group === null && { OSL_ANSWER_MEMORY_MIB: `${LIMIT_MIB / 4}` }),
      },
      command: ['/bin/sh', '-c', group === null ? serve : `echo $$ > ${group}/cgroup.procs; ${serve}`],
    });
    await openSessions(gateway);
    const ends = new AbortController();
    const beside = [asksRest(gateway, ends.signal), asksWire(gateway, ends.signal)];
    const told = await Promise.all(Array.from({ length: CALLERS }, (_, at) => asksForLarge(gateway, at)));
    ends.abort();
    const outcomes = new Set(told.flat());
    for (const outcome of outcomes)
      t.comment(`${outcome}: ${told.flat().filter((other) => other === outcome).length}`);
    t.strictSame(
      [...outcomes].filter((outcome) => !/^(?:answered|E0530|54000|E5039|53200)$/.test(outcome)),
      [],
      'large values are answered, or refused by a limit',
    );
    t.ok(outcomes.has('answered') && outcomes.has('E0530') && outcomes.has('54000'), 'both kinds');
    const asked = await Promise.all(beside);
    t.comment(`beside them: ${asked.map(({ answered }) => answered).join(' and ')} questions`);
    t.strictSame(
      asked.flatMap(({ failed }) => failed),
      [],
      'nobody else’s question fails',
    );
    const peak = peakResidentMib(gateway.child.pid);
    t.comment(`${Math.round(peak)} MiB at most`);
    t.ok(peak < LIMIT_MIB, `the process stays below ${LIMIT_MIB} MiB: ${Math.round(peak)}`);
    await gateway.stop();
    if (group !== null) rmdirSync(group);
    rmSync(dir, { recursive: true });
  }),
);

function policyOf(file: string): string {
  const subjects = Array.from(
    { length: CALLERS },
    (_, at) => `  user:c${at}: { ceiling: [bench], attributes: { region: eu } }\n`,
  );
  return readFileSync(file, 'utf8').replace('  user:bench:', `${subjects.join('')}  user:bench:`);
}

/** A cgroup with the limit, of either version; null where none can be made. */
function memoryGroup(): string | null {
  for (const [parent, limit] of [
    ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'],
    ['/sys/fs/cgroup', 'memory.max'],
  ] as const) {
    const dir = join(parent, `osl-crowd-${process.pid}`);
    try {
      mkdirSync(dir);
      writeFileSync(join(dir, limit), String(LIMIT_MIB * 1_048_576));
      return dir;
    } catch {
      rmSync(dir, { recursive: true, force: true }); // the other version, or none
    }
  }
  return null;
}

/** Lets each caller have a session open: with every processor busy with values, opening the last one takes too long. */
async function openSessions(gateway: Gateway): Promise<void> {
  const text = 'select count(*) from account a, account b where a.id <> b.id';
  const outcomes = await Promise.all(
    Array.from({ length: CALLERS }, async (_, at) => rest(gateway, await gateway.token(`user:c${at}`), text)),
  );
  if (outcomes.some((outcome) => outcome !== 'answered')) await openSessions(gateway);
}

async function asksForLarge(gateway: Gateway, at: number): Promise<readonly string[]> {
  const token = await gateway.token(`user:c${at}`);
  const outcomes: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    const text = TEXTS[(at + round) % TEXTS.length]?.(SIZES[(at + round) % 2] ?? 0) ?? '';
    const ask = at % 3 > 0 ? rest(gateway, token, text, FORMATS[round % 3]) : wire(gateway, token, at, text);
    outcomes.push(await ask.catch(String));
  }
  return outcomes;
}

async function rest(
  { httpPort }: Gateway,
  token: string,
  osql: string,
  accept = FORMATS[0],
): Promise<string> {
  const reply = await fetch(`http://127.0.0.1:${httpPort}/osl/query`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      authorization: `Bearer ${token}`,
      accept: accept ?? '',
    },
    body: JSON.stringify({ osql }),
  });
  let head = '';
  for await (const chunk of reply.body ?? [])
    if (head.length < 500) head += Buffer.from(chunk).toString('latin1', 0, 500);
  return reply.status === 200 ? 'answered' : (/"code":"(\w+)"/.exec(head)?.[1] ?? `${reply.status} ${head}`);
}

async function wire({ pgPort: port }: Gateway, password: string, at: number, text: string): Promise<string> {
  const user = `user:c${at}`;
  const client = await connectPg({ port, user, password });
  client.on('error', () => undefined);
  try {
    await client.query(text);
    return 'answered';
  } catch (error) {
    const { code, message } = error as pg.DatabaseError; // what the driver makes of an ErrorResponse
    return code ?? message;
  } finally {
    await client.end();
  }
}

interface Beside {
  readonly answered: number;
  readonly failed: readonly string[];
}

/** Small questions, one after another, until `signal`. */
async function asks(question: (id: number) => Promise<string>, signal: AbortSignal): Promise<Beside> {
  const failed: string[] = [];
  let answered = 0;
  while (!signal.aborted) {
    const outcome = await question(1 + (answered % 1_000)).catch(String);
    if (outcome === 'answered') answered += 1;
    else failed.push(outcome);
    await pause(50);
  }
  return { answered, failed };
}

async function asksRest(gateway: Gateway, signal: AbortSignal): Promise<Beside> {
  const token = await gateway.token();
  return asks((id) => rest(gateway, token, `select owner from account where id = ${id}`), signal);
}

async function asksWire(gateway: Gateway, signal: AbortSignal): Promise<Beside> {
  const { pgPort: port } = gateway;
  const password = await gateway.token();
  const client = await connectPg({ port, user: 'user:bench', password });
  const found = await asks(
    (id) =>
      client.query(`select owner from account where id = ${id}`).then(
        () => 'answered',
        (error: Error) => error.message,
      ),
    signal,
  );
  await client.end();
  return found;
}
