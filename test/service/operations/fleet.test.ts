import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client as McpClient, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import pg from 'pg';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { workerChains } from '../../../src/service/process-files.js';
import { SKIP, until } from '../../control/support.js';
import { SEED } from '../../support/fast-check.js';
import { osl } from '../../tools/cli/support.js';
import { fleet, type Gateway, policyText } from './gateways.js';

/**
 * Three gateways under load on the wire, REST and MCP, one of them killed at random again and again, while a grant is taken
 * away and given back and metrics are published: no client hears anything wrong, all converge, and every request is in one
 * chain. `OSL_FLEET_SECONDS` says for how long; the seed chooses who dies and what is done.
 */

const SECONDS = Number(process.env['OSL_FLEET_SECONDS'] ?? 6);
const NAMED = 'select name from osl.entities.account where id = 1';
/** What all must have taken up by then, ms: with gateways that start meanwhile; the figure itself is `gateways.test.ts`'s. */
const BOUND_MS = 5_000;

t.setTimeout(SECONDS * 1_000 + 600_000); // a busy machine takes its time; what is claimed of time is asserted

/** A span in which the analyst was granted nothing: from when the activation was acknowledged to when it was given back. */
interface Revoked {
  /** When the database began to write it, to be seen beside what came late. */
  readonly began: number;
  readonly from: number;
  to: number;
}

if (SKIP !== false) {
  t.test('gateways that are killed', { skip: SKIP }, async () => undefined);
} else {
  t.test('gateways that are killed while they serve', async (t) => {
    const { gateways, activate, policy } = await fleet(t);
    const random = randomOf(SEED);
    const one = <T>(of: readonly T[]): T => {
      const found = of[Math.floor(random() * of.length)];
      if (found === undefined) throw new Error('nothing to choose from');
      return found;
    };
    const told: string[] = [];
    const ids = new Map<string, string>();
    const granted: number[] = [];
    const counts = { wire: 0, rest: 0, mcp: 0, refused: 0, broken: 0 };
    let stop = false;

    /** The bystander's rights never change: whatever it is answered is this, or an error of a connection. */
    const right = (rows: unknown, where: string): void => {
      if (JSON.stringify(rows) !== '[{"name":"name 1"}]') told.push(`${where}: ${JSON.stringify(rows)}`);
    };
    /** Asks for as long as it is told to, each time of a gateway that is there; what breaks is asked again. */
    const asking = async (begin: (gateway: Gateway) => Promise<() => Promise<void>>): Promise<void> => {
      while (!stop) {
        try {
          const gateway = one(gateways);
          const ask = await begin(gateway);
          for (let n = 0; n < 20 && !stop; n++) {
            await ask();
            await sleep(20);
          }
        } catch {
          counts.broken += 1;
          await sleep(50);
        }
      }
    };
    const clients: pg.Client[] = [];
    const load = [
      asking(async (gateway) => {
        const client = await gateway.connect('user:bystander');
        clients.push(client);
        return async () => {
          right((await client.query(NAMED)).rows, 'wire');
          counts.wire += 1;
        };
      }),
      asking(async (gateway) => {
        const client = await gateway.connect('user:analyst');
        clients.push(client);
        return async () => {
          const began = Date.now();
          try {
            right((await client.query(NAMED)).rows, 'wire');
            granted.push(began);
          } catch (error) {
            if (!(error instanceof pg.DatabaseError)) throw error;
            counts.refused += 1;
          }
        };
      }),
      asking(async (gateway) => async () => {
        const reply = await gateway.rest('/osl/query', { osql: NAMED }, 'user:bystander');
        if (reply.status === 200) right(reply.body['rows'], 'REST');
        ids.set(String(reply.body['request_id']), 'REST');
        counts.rest += 1;
      }),
      asking(async (gateway) => {
        const client = new McpClient({ name: 'test', version: '1' });
        const authorization = `Bearer ${await gateway.token('user:bystander')}`;
        const url = new URL(`http://127.0.0.1:${String(gateway.server.record()['httpPort'])}/mcp`);
        await client.connect(
          new StreamableHTTPClientTransport(url, { requestInit: { headers: { authorization } } }),
        );
        return async () => {
          const result = await client.callTool({ name: 'semantic_query', arguments: { osql: NAMED } });
          const content: { rows?: unknown; request_id?: unknown } = {
            ...(result.structuredContent as object),
          };
          if (result.isError !== true) right(content.rows, 'MCP');
          if (typeof content.request_id === 'string') ids.set(content.request_id, 'MCP');
          counts.mcp += 1;
        };
      }),
    ];

    const revoked: Revoked[] = [];
    const published: string[] = [];
    let killed = 0;
    const until_ = Date.now() + SECONDS * 1_000;
    while (Date.now() < until_ || killed === 0 || revoked.length === 0 || published.length === 0) {
      const victim = one(gateways);
      await victim.server.signal('SIGKILL');
      killed += 1;
      const others = gateways.filter((gateway) => gateway !== victim);
      const open = revoked.at(-1);
      if (open === undefined || open.to !== Number.POSITIVE_INFINITY) {
        const began = await activate(policyText('id'));
        revoked.push({ began, from: Date.now(), to: Number.POSITIVE_INFINITY });
      } else {
        open.to = Date.now();
        const back = await policy('rollback');
        if (back.code !== 0) throw new Error(back.stderr);
      }
      const name = `metric_${published.length}`;
      const through = one(others);
      const { body } = await through.rest('/osl/objects', null, '', true);
      const fragment = `metrics:\n  ${name}: { entity: account, expression: count(id) }\n`;
      const done = await through.rest('/osl/objects', { fragment, base_version: body['version'] }, '', true);
      if (done.status === 201) published.push(name);
      else if (done.status !== 412) told.push(`publish: ${done.status} ${JSON.stringify(done.body)}`);
      ids.set(String(done.body['request_id']), 'publish');
      await victim.restart();
    }
    const last = revoked.at(-1);
    if (last?.to === Number.POSITIVE_INFINITY) {
      last.to = Date.now();
      await policy('rollback');
    }
    stop = true;
    await Promise.all(load);
    for (const client of clients) await client.end().catch(() => undefined); // its gateway may be gone

    t.strictSame(told, [], 'no client heard anything wrong');
    t.ok(
      counts.wire > 0 && counts.rest > 0 && counts.mcp > 0 && counts.refused > 0,
      JSON.stringify({ ...counts, killed }),
    );
    const late = granted.flatMap((at) =>
      revoked
        .filter(({ from, to }) => at > from + BOUND_MS && at < to)
        .map(({ began, from }) => ({ at, afterBegin: at - began, afterAcknowledged: at - from })),
    );
    t.strictSame(late, [], 'nothing that was taken away was given much later');

    for (const gateway of gateways)
      for (const name of published)
        await until(async () => {
          const osql = `select measure(${name}) as n from osl.entities.account`;
          return (await gateway.rest('/osl/query', { osql }, 'user:bystander')).status === 200;
        });
    t.pass(`every gateway serves all ${published.length} that were published`);

    await Promise.all(gateways.map(({ server }) => server.signal('SIGTERM')));
    const chains = gateways.flatMap(({ dataDir }) => chainsOf(dataDir));
    const writers = new Set(chains.map((dir) => readFileSync(join(dir, 'checkpoint.vkey'), 'utf8')));
    t.equal(writers.size, chains.length, 'each chain has a writer of its own');
    const standsIn = new Map<string, Set<string>>();
    for (const dir of chains)
      for await (const { request_id, kind } of readRecords(dir)) {
        if (kind !== 'decision') continue;
        const known = standsIn.get(request_id) ?? new Set();
        standsIn.set(request_id, known.add(dir));
      }
    t.strictSame(
      [...standsIn].filter(([, dirs]) => dirs.size > 1),
      [],
      'no request is in two chains',
    );
    const missing = [...ids].filter(([id]) => !standsIn.has(id));
    t.strictSame(missing, [], `each of the ${ids.size} requests that were answered is in one`);
    for (const { dataDir } of gateways) {
      const verified = await osl(['audit', 'verify', '--data-dir', dataDir]);
      t.equal(verified.code, 0, verified.stdout + verified.stderr);
    }
  });
}

/** The chains of one gateway: that of the process that keeps the directory, and those of workers. */
function chainsOf(dataDir: string): readonly string[] {
  const root = join(dataDir, 'audit');
  return [root, ...workerChains(root).map(({ dir }) => dir)].filter((dir) =>
    existsSync(join(dir, 'checkpoint.vkey')),
  );
}

/** Numbers from 0 to 1, the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
