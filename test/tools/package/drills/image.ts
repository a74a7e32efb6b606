/**
 * The image, built from the Dockerfile and run by a container engine: `npm run image-drill`. It is built twice, for the
 * working tree and for the commit before (`OSL_TEST_IMAGE_BEFORE`, a ref), and prints size, start times and memory.
 */
import { readFileSync } from 'node:fs';
import { cp, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t, { type Test } from 'tap';
import { run } from '../../../../release/run.js';
import { EXAMPLE, ROOT, temporary } from '../../cli/support.js';
import { imageDeployment } from '../as-deployed.js';
import { ensureBase } from './base.js';
import { freePort } from './free-port.js';
import { buildImage, Container, lacking, podman } from './podman.js';

const NOW = 'localhost/osl-gateway:now';
const BEFORE = 'localhost/osl-gateway:before';
/** Bytes of the layer with the application. */
const LARGEST_LAYER = 70e6;
/** Processor time to ready on an existing data directory; wall time depends too much on what else runs. */
const LONGEST_START_MS = 4_000;
/** When ready on an existing data directory: V8 must not optimize WebAssembly while it starts. */
const LARGEST_PEAK_MIB = 400;
const OSL = ['node', '/opt/osl/node_modules/osl-gateway/bin/osl.js'];
const COUNT = 'select count(*) as n from osl.entities.package';

t.setTimeout(1_800_000);
const skip = lacking('podman', 'runc', 'debootstrap', 'npm');
const config = join(temporary(), 'etc');
const volumes: string[] = [];
const containers: Container[] = [];

async function volume(): Promise<string> {
  const name = (await podman('volume', 'create')).trim();
  volumes.push(name);
  return name;
}

interface Gateway {
  readonly container: Container;
  readonly url: string;
  readonly pgPort: number;
  /** From the engine's command until `/ready` is 200. */
  readonly readyMs: number;
  readonly processorMs: number;
  readonly peakMib: number;
}

async function started(image: string, data: string, ...args: readonly string[]): Promise<Gateway> {
  const [httpPort, pgPort] = [await freePort(), await freePort()];
  const env = { OSL_HOST: '127.0.0.1', OSL_HTTP_PORT: String(httpPort), OSL_PG_PORT: String(pgPort) };
  const began = performance.now();
  const container = await Container.start(`drill-${httpPort}`, { image, volume: data, config, env, args });
  containers.push(container);
  const url = `http://127.0.0.1:${httpPort}`;
  while (
    !(await fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (!(await container.isRunning())) throw new Error(await container.log());
    await sleep(20);
  }
  const readyMs = performance.now() - began;
  const pid = await container.pid();
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [user = 0, system = 0] = stat.slice(stat.lastIndexOf(')')).split(' ').slice(12).map(Number);
  const peak = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1];
  return {
    container,
    url,
    pgPort,
    readyMs,
    processorMs: (user + system) * 10,
    peakMib: Number(peak) / 1_024,
  };
}

/** The number of packages by REST and by the Postgres port, as an analyst. */
async function counts({ container, url, pgPort }: Gateway): Promise<readonly number[]> {
  const token = (await container.exec(...OSL, 'token', '--subject', 'user:analyst')).trim();
  const reply = await fetch(`${url}/osl/query`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ osql: COUNT }),
  });
  const body = (await reply.json()) as { readonly rows?: readonly { readonly n: string }[] };
  const client = new pg.Client({
    host: '127.0.0.1',
    port: pgPort,
    user: 'user:analyst',
    password: token,
    database: 'osl',
  });
  await client.connect();
  const { rows } = await client.query<{ n: string }>(COUNT);
  await client.end();
  return [body.rows?.[0], rows[0]].map((row) => Number(row?.n));
}

function told(t: Test, what: string, { readyMs, processorMs, peakMib }: Gateway): void {
  const [ready, processor] = [readyMs, processorMs].map((ms) => (ms / 1_000).toFixed(1));
  t.comment(
    `${what}: ready after ${ready} s (${processor} s of processor time), peak ${Math.round(peakMib)} MiB`,
  );
}

/** A checkout of the commit before, without its history. */
async function checkoutBefore(): Promise<string> {
  const folder = temporary();
  const ref = process.env['OSL_TEST_IMAGE_BEFORE'] ?? 'HEAD~1';
  const tar = join(temporary(), 'before.tar');
  await run(ROOT, 'git', 'archive', '--format=tar', '-o', tar, ref);
  await run(folder, 'tar', '-xf', tar);
  return folder;
}

t.test('the image', { skip }, async (t) => {
  t.teardown(async () => {
    for (const container of containers) await container.remove();
    if (volumes.length > 0) await podman('volume', 'rm', '--force', ...volumes);
    await podman('rmi', '--force', NOW, BEFORE);
    await podman('image', 'prune', '--force'); // stages of the builds
  });
  await mkdir(config);
  for (const file of ['manifest.yaml', 'policy.yaml']) await cp(join(EXAMPLE, file), join(config, file));
  await ensureBase(join(ROOT, 'Dockerfile'));
  const began = performance.now();
  await buildImage(ROOT, NOW);
  t.comment(`built in ${Math.round((performance.now() - began) / 1_000)} s`);

  await t.test('the application is small', async (t) => {
    const layers = JSON.parse(await podman('history', '--format', 'json', NOW)) as readonly {
      readonly size: number;
      readonly CreatedBy: string;
    }[];
    const bytes = layers
      .filter((layer) => / in \/opt\/osl\s*$/.test(layer.CreatedBy))
      .map(({ size }) => size);
    t.comment(`layer of the application: ${bytes.map((size) => (size / 1e6).toFixed(1))} MB`);
    t.equal(bytes.length, 1);
    t.ok((bytes[0] ?? Number.POSITIVE_INFINITY) < LARGEST_LAYER, `${bytes} bytes`);
  });

  const data = await volume();
  await t.test('the demo has rows on an empty volume, and what stops it is a clean end', async (t) => {
    const gateway = await started(NOW, data, 'demo');
    const { container } = gateway;
    told(t, 'demo on an empty volume', gateway);
    const [rest = 0, wire = 0] = await counts(gateway);
    t.ok(rest > 50 && rest === wire, `${rest} packages by REST, ${wire} by the Postgres port`);
    t.match(await container.log(), /\| \[redacted\] \|/);
    t.equal(await container.stop(15), 0, 'SIGTERM ends it by itself');
    t.match(await container.log(), /^stopped$/m);
  });

  await t.test('it serves the same volume again, confined and healthy', async (t) => {
    const gateway = await started(NOW, data);
    const { container } = gateway;
    told(t, 'serve on an existing volume', gateway);
    t.ok(gateway.processorMs < LONGEST_START_MS, `${gateway.processorMs} ms`);
    t.ok(gateway.peakMib < LARGEST_PEAK_MIB, `${gateway.peakMib} MiB`);
    const [rest = 0, wire = 0] = await counts(gateway);
    t.ok(rest > 50 && rest === wire, `${rest} packages by REST, ${wire} by the Postgres port`);
    t.equal(await container.exec(...imageDeployment().health), '', 'its health check passes');
    const status = await container.exec('cat', '/proc/1/status');
    t.match(status, /^Uid:\s+1000\s+1000\s+1000\s+1000$/m);
    for (const field of ['CapPrm', 'CapEff', 'CapBnd'])
      t.match(status, new RegExp(`^${field}:\\s+0+$`, 'm'), field);
    t.match(status, /^NoNewPrivs:\s+1$/m);
    const places = ['/x', '/tmp/x', '/etc/osl/x', '/opt/osl/x', '/var/lib/osl/x'];
    const touch = 'for f in "$@"; do (: > "$f") 2>/dev/null && echo "$f"; done; rm -f /var/lib/osl/x';
    t.equal(
      await container.exec('sh', '-c', touch, '-', ...places),
      '/var/lib/osl/x\n',
      'all it can write to',
    );
    t.match(await container.exec('sh', '-c', 'ls /usr/local/bin'), /^node\n$/, 'nothing that installs');
    t.equal(await container.stop(15), 0);
    t.match(await verified(data), /the chain holds/);
  });

  await t.test('a stop while it starts ends it at once', async (t) => {
    const container = await Container.start('drill-early', {
      ...{ image: NOW, volume: data, config },
      env: { OSL_HOST: '127.0.0.1', OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' },
    });
    containers.push(container);
    await sleep(400);
    const code = await container.stop(15);
    t.ok(code === 143 || code === 0, `exit status ${code}, not 137`);
  });

  await t.test('it opens what the image of the commit before wrote', async (t) => {
    const before = await checkoutBefore();
    await ensureBase(join(before, 'Dockerfile'));
    await buildImage(before, BEFORE);
    const older = await volume();
    const old = await started(BEFORE, older, 'demo');
    const packages = await counts(old);
    t.equal(await old.container.stop(15), 0);
    const gateway = await started(NOW, older);
    told(t, 'serve on a volume of the commit before', gateway);
    t.same(await counts(gateway), packages, 'the same rows');
    t.equal(await gateway.container.stop(15), 0);
    t.match(await verified(older), /the chain holds/);
  });
});

/** What `osl audit verify` in the image says of a volume. */
async function verified(data: string): Promise<string> {
  return podman(
    ...[
      'run',
      '--rm',
      '--ulimit',
      'nofile=4096:4096',
      '--ulimit',
      'nproc=4096:4096',
      '--network',
      'none',
      '--read-only',
    ],
    ...['--volume', `${data}:/var/lib/osl`, NOW, 'audit', 'verify'],
  );
}
