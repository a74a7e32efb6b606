import { spawn } from 'node:child_process';
import { readdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import t, { test } from 'tap';
import { mintToken } from '../../policy/index.js';
import { VersionStore } from '../../src/model/versions/versions.js';
import { tenantKeys } from '../../src/service/keys.js';
import { EXAMPLE, osl, Server, temporary } from '../tools/cli/support.js';

t.setTimeout(600_000);
const WRITER = join(dirname(fileURLToPath(import.meta.url)), 'writer.js');
const ROUNDS = 15;

test('kill -9 while versions are written leaves the old one or the new one', async (t) => {
  const dir = join(temporary(), 'published');
  let acknowledged = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const said = await killedAfter(dir, 5 + Math.random() * 60);
    const last = said.filter((line) => line.startsWith('wrote ')).at(-1);
    if (last !== undefined) acknowledged = Number(last.slice('wrote '.length));
    const versions = await VersionStore.open(dir);
    const number = versions.head?.number ?? 0;
    t.ok(
      number === acknowledged || number === acknowledged + 1,
      `round ${round}: ${number} after ${acknowledged} was told`,
    );
    t.equal(versions.history.length, number, 'the whole history is there');
    t.same(versions.head?.over ?? {}, number === 0 ? {} : { 'metrics.last': null });
    acknowledged = number;
  }
  t.ok(acknowledged > ROUNDS, `versions were written: ${acknowledged}`);
  const versions = await VersionStore.open(dir);
  writeFileSync(join(dir, 'versions', `${'0'.repeat(64)}.json`), 'half a vers');
  writeFileSync(join(dir, 'head.new'), 'half a he');
  t.equal((await VersionStore.open(dir)).head?.id, versions.head?.id, 'what nobody published is nothing');
  await versions.sweep();
  t.equal(readdirSync(join(dir, 'versions')).length, versions.history.length, 'and is swept away');
});

/** Runs the writer, kills it `ms` after it has opened, and gives the lines that it said. */
async function killedAfter(dir: string, ms: number): Promise<readonly string[]> {
  const child = spawn(process.execPath, [WRITER, dir], { stdio: ['ignore', 'pipe', 'inherit'] });
  let said = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  const ended = new Promise((resolve) => child.once('close', resolve));
  while (!said.includes('open ') && child.exitCode === null) await setTimeout(2);
  await setTimeout(ms);
  child.kill('SIGKILL');
  await ended;
  // A line that was cut is none.
  return said.slice(0, said.lastIndexOf('\n') + 1).split('\n');
}

test('a server that is killed while it publishes serves the old version or the new one', async (t) => {
  const dataDir = join(temporary(), 'data');
  const args = [
    'serve',
    '--manifest',
    join(EXAMPLE, 'manifest.yaml'),
    '--policy',
    join(EXAMPLE, 'policy.yaml'),
  ];
  let told = 0;
  let version = '';
  for (let round = 0; round < 2; round++) {
    const server = new Server(args, dataDir);
    t.teardown(() => server.signal('SIGKILL'));
    await server.said('Ctrl-C');
    const post = publisher(`http://127.0.0.1:${server.record()['httpPort']}`, dataDir);
    const { history, version: served } = await post.list();
    const number = history[0]?.number ?? 0;
    t.ok(number === told || number === told + 1, `round ${round}: ${number} after ${told}`);
    if (number > 0) t.equal(history[0]?.manifest, served, 'what the newest version says is what is served');
    if (number === told && version !== '') t.equal(served, version);
    if (round > 0) {
      const listed = await osl(['objects', '--data-dir', dataDir, '--subject', 'user:admin']);
      t.match(
        listed,
        { code: 0, stdout: `serves manifest ${served};` },
        'a minted token claims the admin role',
      );
      const reader = await osl(['objects', '--data-dir', dataDir, '--subject', 'user:analyst']);
      t.match(reader, { code: 1, stderr: /^error E2101/ }, 'of those who have one');
    }
    told = number;
    version = served;
    const running = post.publishMany((n, manifest) => {
      told = n;
      version = manifest;
    }, served);
    while (round === 0 && told === 0) await Promise.race([running, setTimeout(5)]);
    await setTimeout(Math.random() * 100);
    await server.signal('SIGKILL');
    await running;
  }
  t.ok(told > 0, `versions were published: ${told}`);
});

interface Listed {
  readonly version: string;
  readonly history: readonly { readonly number: number; readonly manifest: string }[];
}

function publisher(url: string, dataDir: string) {
  const headers = async () => {
    const { signing } = tenantKeys(dataDir);
    const claims = { tenant: 'demo', chain: ['user:admin'], roles: ['TENANT_ADMIN'], aclRoles: [] };
    const token = await mintToken(claims, { algorithm: 'HS256', secret: signing });
    return { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  };
  return {
    async list(): Promise<Listed> {
      const reply = await fetch(`${url}/osl/objects`, { headers: await headers() });
      return (await reply.json()) as Listed;
    },
    /** One version after the other, until the server is gone. */
    async publishMany(onPublished: (number: number, manifest: string) => void, base: string): Promise<void> {
      let base_version = base;
      for (let n = 0; ; n++) {
        const fragment = { lexicon: { [`word ${n} ${base}`]: { refers_to: 'package' } } };
        const body = JSON.stringify({ fragment, base_version });
        const sent = { method: 'POST', headers: await headers(), body };
        const reply = await answerTo(fetch(`${url}/osl/objects`, sent));
        if (reply === null) return;
        if (reply.status === 429) {
          await setTimeout(50);
          continue;
        }
        if (reply.status !== 201) throw new Error(reply.text);
        const answer: { version: { number: number }; versions: { manifest: string } } = JSON.parse(
          reply.text,
        );
        base_version = answer.versions.manifest;
        onPublished(answer.version.number, base_version);
      }
    },
  };
}

/** Null where the server was killed before all of it had come. */
async function answerTo(sent: Promise<Response>): Promise<{ status: number; text: string } | null> {
  try {
    const reply = await sent;
    return { status: reply.status, text: await reply.text() };
  } catch {
    return null;
  }
}
