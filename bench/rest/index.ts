import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, paired } from '../report.js';
import { type Child, cpuSeconds, startChild } from '../support/child.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { MANIFEST, POLICY } from '../wire/contestants.js';
import type { LoadOptions, LoadResult } from './load.js';

const run = promisify(execFile);

const QUESTION = 'select id, owner, balance, opened from osl.entities.account where id = {id}';

/** `POST /osl/query` compared with a hand-written route that returns the same JSON without any governance. */
export async function restBench(quick: boolean): Promise<Findings> {
  const keys = quick ? 100_000 : 1_000_000;
  return withPostgres(accounts(keys), async (postgres) => {
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres });
    try {
      const written = await startHandwritten(postgres, await frameOf(gateway));
      try {
        await requireSameAnswer(gateway, written);
        return { measures: await compare(gateway, written, keys, quick), tables: [] };
      } finally {
        await written.child.stop();
      }
    } finally {
      await gateway.stop();
    }
  });
}

interface Handwritten {
  readonly child: Child;
  readonly port: number;
}

async function startHandwritten(postgres: NativePostgres, frame: string): Promise<Handwritten> {
  const file = fileURLToPath(new URL('./handwritten.js', import.meta.url));
  const env = { ...process.env, BENCH_DATABASE_URL: postgres.readerUrl, HANDWRITTEN_FRAME: frame };
  const child = await startChild([process.execPath, file], { env }, (line) => line.includes('"listening"'));
  const said: { readonly port: number } = JSON.parse(child.ready);
  return { child, port: said.port };
}

async function compare(
  gateway: Gateway,
  written: Handwritten,
  keys: number,
  quick: boolean,
): Promise<readonly Measure[]> {
  const measures: Measure[] = [];
  const byHand = (common: Common): Promise<Run> =>
    costed(written.child, { ...common, port: written.port, ...handwrittenRequest });
  const governed = async (common: Common): Promise<Run> =>
    costed(gateway.child, { ...common, port: gateway.httpPort, ...(await gatewayRequest(gateway)) });
  // Both processes have just started, so their code is not compiled yet.
  for (const warm of [byHand, governed]) await warm({ keys, connections: 16, seconds: 3 });
  for (const connections of quick ? [64, 16] : [64, 16, 1]) {
    const ours: Run[] = [];
    const theirs: Run[] = [];
    for (let round = 0; round < (quick ? 3 : 7); round++) {
      const common = { keys, connections, seconds: quick ? 2 : 5 };
      theirs.push(await byHand(common));
      ours.push(await governed(common));
    }
    const id = connections === 64 ? 'rest.point' : `rest.point.c${connections}`;
    const against = 'Fastify + pg by hand, ungoverned';
    const of = (unit: string, better: 'more' | 'less', name: string, pick: (r: Run) => number): Measure =>
      paired(`${id}.${name}`, unit, better, ours.map(pick), theirs.map(pick), against);
    measures.push(of('requests/s', 'more', 'vs_handwritten', (r) => r.rps));
    measures.push(
      of('µs', 'less', 'p50', (r) => r.p50Us),
      of('µs', 'less', 'p99', (r) => r.p99Us),
    );
    measures.push(of('µs/request', 'less', 'cpu', (r) => r.cpuUs));
  }
  return measures;
}

type Common = Pick<LoadOptions, 'keys' | 'connections' | 'seconds'>;

interface Run extends LoadResult {
  /** Processor time of the serving process per request. */
  readonly cpuUs: number;
}

/** Puts a load on a server and measures its processor time. */
export async function costed({ pid }: Child, options: LoadOptions): Promise<Run> {
  const before = cpuSeconds(pid);
  const result = await load(options);
  return { ...result, cpuUs: (1e6 * (cpuSeconds(pid) - before)) / (result.rps * options.seconds) };
}

const handwrittenRequest = { path: '/account', headers: {}, body: '{"id":{id}}' };

/** The request of a point query, without its key. */
export async function gatewayRequest(
  gateway: Gateway,
): Promise<Pick<LoadOptions, 'path' | 'headers' | 'body'>> {
  const headers = { authorization: `Bearer ${await gateway.token()}` };
  return { path: '/osl/query', headers, body: JSON.stringify({ osql: QUESTION }) };
}

async function load(options: LoadOptions): Promise<LoadResult> {
  const file = fileURLToPath(new URL('./load.js', import.meta.url));
  const { stdout } = await run(process.execPath, [file, JSON.stringify(options)]);
  const result: LoadResult = JSON.parse(stdout);
  return result;
}

/** The constant part of the gateway's answer: everything except rows and ids. */
async function frameOf(gateway: Gateway): Promise<string> {
  const { request_id: _, rows: __, ...frame } = await answer(gateway.httpPort, await gatewayRequest(gateway));
  return JSON.stringify(frame);
}

async function requireSameAnswer(gateway: Gateway, written: Handwritten): Promise<void> {
  const strip = ({ request_id: _, ...rest }: Record<string, unknown>): string => JSON.stringify(rest);
  const ours = strip(await answer(gateway.httpPort, await gatewayRequest(gateway)));
  const theirs = strip(await answer(written.port, handwrittenRequest));
  if (ours !== theirs) throw new Error(`the two routes do not answer the same:\n${ours}\n${theirs}`);
}

async function answer(
  port: number,
  { path, headers, body }: Pick<LoadOptions, 'path' | 'headers' | 'body'>,
): Promise<Record<string, unknown>> {
  const reply = await fetch(`http://127.0.0.1:${port}${path}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: body.replace('{id}', '42'),
  });
  const value: unknown = await reply.json();
  if (reply.status !== 200 || typeof value !== 'object' || value === null) {
    throw new Error(`${path} answered ${reply.status}: ${JSON.stringify(value)}`);
  }
  return { ...value };
}
