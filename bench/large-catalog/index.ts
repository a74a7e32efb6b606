import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, measure } from '../report.js';
import { manifestYaml, policyYaml, type Size } from '../scale/generate.js';
import { cpuSeconds, residentMib } from '../support/child.js';
import { type Gateway, SUBJECT, startGateway } from '../support/gateway.js';
import { withPostgres } from '../support/postgres.js';

const ENTITIES = 10_000;
/** Tables that one statement creates; more need more locks than Postgres has room for. */
const TABLES_AT_ONCE = 500;
/** A role with a grant on each entity. */
const ROLE = 'role_0';

const run = promisify(execFile);

/**
 * A gateway with ten thousand entities: its start, what reading and changing its catalog takes, and how long another
 * caller waits meanwhile. The other caller asks for `/health` every millisecond from a thread of its own.
 */
export async function largeCatalogBench(quick: boolean): Promise<Findings> {
  const entities = quick ? 1_000 : ENTITIES;
  const size: Size = { entities, grants: 10 * entities };
  const dir = mkdtempSync(join(tmpdir(), 'osl-large-catalog-'));
  const files = { manifestFile: join(dir, 'manifest.yaml'), policyFile: join(dir, 'policy.yaml') };
  writeFileSync(files.manifestFile, manifestYaml(size));
  writeFileSync(files.policyFile, policyYaml(size));
  try {
    return await withPostgres(['create schema shop', ...tables(size.entities)], async (postgres) => ({
      measures: [
        ...(await starts(files, postgres, quick ? 1 : 5)),
        ...(await served(files, postgres, quick ? 2 : 5)),
      ],
      tables: [],
    }));
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

interface Files {
  readonly manifestFile: string;
  readonly policyFile: string;
}

function tables(entities: number): readonly string[] {
  const names = Array.from({ length: entities }, (_, i) => (i === 0 ? 'orders' : `orders_${i}`));
  const one = (name: string): string =>
    `create table shop.${name} (id int8 primary key, customer_id int8, status text, region text, email text, amount numeric, created_at timestamp)`;
  const portions: string[] = [];
  for (let i = 0; i < names.length; i += TABLES_AT_ONCE)
    portions.push(
      names
        .slice(i, i + TABLES_AT_ONCE)
        .map(one)
        .join(';'),
    );
  return [
    ...portions,
    'grant usage on schema shop to osl_reader; grant select on all tables in schema shop to osl_reader',
  ];
}

/** Time until the ports listen, of starts in a new data directory. */
async function starts(files: Files, postgres: NativePostgres, rounds: number): Promise<readonly Measure[]> {
  const seconds: number[] = [];
  const memory: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    const gateway = await startGateway({ ...files, postgres });
    seconds.push((performance.now() - began) / 1_000);
    memory.push(residentMib(gateway.child.pid));
    await gateway.stop();
  }
  return [
    measure('large_catalog.start.s', 's', seconds, 'goal: 4'),
    measure('large_catalog.start.rss_mib', 'MiB', memory),
  ];
}

/** Something done to the catalog. */
interface Act {
  readonly name: string;
  readonly goal: string | null;
  run(round: number): Promise<void>;
}

interface Cost {
  readonly ms: number;
  /** Processor time of the gateway in ms. */
  readonly cpuMs: number;
  /** Longest wait of the other caller in ms. */
  readonly heldMs: number;
}

async function served(files: Files, postgres: NativePostgres, rounds: number): Promise<readonly Measure[]> {
  let auditDir = '';
  const prepare = async (dataDir: string): Promise<void> => {
    auditDir = join(dataDir, 'audit');
  };
  const gateway = await startGateway({ ...files, postgres, prepare });
  try {
    const beside = await Beside.start(gateway.httpPort);
    try {
      const measures: Measure[] = [
        measure('large_catalog.nothing.held_ms', 'ms', [await beside.longest(() => sleep(2_000))]),
      ];
      for (const act of await actsOn(gateway, auditDir)) {
        const costs: Cost[] = [];
        for (let round = 0; round < rounds; round++) costs.push(await costOf(act, round, gateway, beside));
        measures.push(
          measure(
            `large_catalog.${act.name}.ms`,
            'ms',
            costs.map(({ ms }) => ms),
            act.goal,
          ),
          measure(
            `large_catalog.${act.name}.cpu_ms`,
            'ms',
            costs.map(({ cpuMs }) => cpuMs),
          ),
          measure(
            `large_catalog.${act.name}.held_ms`,
            'ms',
            costs.map(({ heldMs }) => heldMs),
            'goal: 50',
          ),
        );
      }
      return measures;
    } finally {
      await beside.stop();
    }
  } finally {
    await gateway.stop();
  }
}

async function costOf(act: Act, round: number, gateway: Gateway, beside: Beside): Promise<Cost> {
  const { pid } = gateway.child;
  const cpu = cpuSeconds(pid);
  let ms = 0;
  const heldMs = await beside.longest(async () => {
    const began = performance.now();
    await act.run(round);
    ms = performance.now() - began;
  });
  return { ms, cpuMs: 1_000 * (cpuSeconds(pid) - cpu), heldMs };
}

async function actsOn(gateway: Gateway, auditDir: string): Promise<readonly Act[]> {
  const origin = `http://127.0.0.1:${gateway.httpPort}`;
  const tokenOf = (admin: readonly string[] = []): Promise<string> => gateway.token(SUBJECT, ROLE, admin);
  const get = async (path: string): Promise<void> => {
    const response = await fetch(`${origin}${path}`, {
      headers: { authorization: `Bearer ${await tokenOf()}` },
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${path}: ${response.status}`);
  };
  const psql = async (command: string): Promise<void> => {
    await run(
      'psql',
      ['-h', '127.0.0.1', '-p', String(gateway.pgPort), '-U', SUBJECT, '-d', 'osl', '-Atqc', command],
      {
        env: { ...process.env, PGPASSWORD: await tokenOf() },
        maxBuffer: 2 ** 28,
      },
    );
  };
  return [
    { name: 'schema', goal: null, run: () => get('/osl/schema?governed=true') },
    { name: 'resolve', goal: null, run: (round) => get(`/osl/schema/resolve?term=orders_${7_000 + round}`) },
    { name: 'map', goal: null, run: () => get('/osl/domain-map?governed=true') },
    { name: 'describe_all', goal: null, run: () => psql('\\d') },
    { name: 'describe_one', goal: null, run: (round) => psql(`\\d orders_${70 + round}`) },
    {
      name: 'publish',
      goal: 'goal: 1000',
      run: (round) => publish(origin, round, () => tokenOf(['TENANT_ADMIN'])),
    },
    { name: 'reload', goal: null, run: () => reload(gateway, auditDir) },
  ];
}

async function publish(origin: string, round: number, token: () => Promise<string>): Promise<void> {
  const headers = { authorization: `Bearer ${await token()}` };
  const objects = await fetch(`${origin}/osl/objects`, { headers });
  const base = objects.headers.get('etag');
  if (base === null) throw new Error(`the published objects: ${objects.status} ${await objects.text()}`);
  await objects.arrayBuffer();
  const response = await fetch(`${origin}/osl/objects`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${await token()}`,
      'content-type': 'application/json',
      'if-match': base,
    },
    body: JSON.stringify({
      fragment: `metrics:\n  number_${round}: { entity: orders_${round + 1}, expression: count(*) }\n`,
    }),
  });
  if (response.status !== 201) throw new Error(`publishing: ${response.status} ${await response.text()}`);
}

/** Sends SIGHUP and waits until the audit log says that the files were read. */
async function reload(gateway: Gateway, auditDir: string): Promise<void> {
  const before = reloadsIn(auditDir);
  process.kill(gateway.child.pid, 'SIGHUP');
  while (reloadsIn(auditDir) === before) await sleep(20);
}

function reloadsIn(auditDir: string): number {
  const segments = readdirSync(auditDir).filter((name) => name.endsWith('.log'));
  const texts = segments.map((name) => readFileSync(join(auditDir, name), 'latin1'));
  return texts.reduce((sum, text) => sum + text.split('service.reload').length - 1, 0);
}

/** Another caller, in a thread of its own. */
class Beside {
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
  }

  static async start(port: number): Promise<Beside> {
    const worker = new Worker(new URL('./beside.js', import.meta.url), { workerData: { port } });
    await once(worker, 'message');
    return new Beside(worker);
  }

  /** The longest answer in ms while `work` runs. */
  async longest(work: () => Promise<void>): Promise<number> {
    await this.#asked('begin');
    await work();
    return this.#asked('end');
  }

  async stop(): Promise<void> {
    await this.#worker.terminate();
  }

  async #asked(what: 'begin' | 'end'): Promise<number> {
    const answer = once(this.#worker, 'message');
    this.#worker.postMessage(what);
    const [longestMs] = await answer;
    return Number(longestMs);
  }
}
