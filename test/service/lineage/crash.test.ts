import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { readRecords } from '../../../audit/index.js';
import { ROOT } from '../../tools/cli/support.js';
import { lineageYaml } from './endpoint.js';
import { memberIn } from './openlineage-schema.js';
import { answering, type Behaviour, runsIn, startReceiver } from './receiver.js';

/** `OSL_LINEAGE_CRASHES` times kill -9 at a random moment of a process that records runs and emits their events. */
const ROUNDS = Number(process.env['OSL_LINEAGE_CRASHES'] ?? 3);
const CHILD = new URL('./crash-child.js', import.meta.url).pathname;
const EXAMPLE = join(ROOT, 'examples', 'supply-chain');

t.setTimeout(0);

const dir = mkdtempSync(join(tmpdir(), 'osl-lineage-crash-'));
const receiver = await startReceiver();
t.teardown(async () => {
  await receiver.close();
  rmSync(dir, { recursive: true, force: true });
});
writeFileSync(join(dir, 'lineage.yaml'), lineageYaml(receiver.url));

const failed = new Set<unknown>();

const failingAtFirst: Behaviour = (request, response, n) => {
  const id = request.headers['webhook-id'];
  const fails = n % 3 === 0 && !failed.has(id);
  if (fails) failed.add(id);
  answering(fails ? 500 : 200)(request, response, n);
};

async function child(mode: 'finish' | 'run') {
  const started = spawn(process.execPath, [CHILD, dir, EXAMPLE, mode], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  started.stdout.setEncoding('utf8').on('data', (text: string) => {
    printed += text;
  });
  const exited = once(started, 'close');
  if (mode === 'run') {
    await Promise.race([once(started.stdout, 'data'), exited]);
    setTimeout(() => started.kill('SIGKILL'), Math.random() * 600);
  }
  const [code, signal] = await exited;
  return { code, signal, acknowledged: printed.split('a').length - 1 };
}

t.test(
  `kill -9, ${ROUNDS} times: every decision on record is counted once, whatever its receiver did`,
  async (t) => {
    let acknowledged = 0;
    for (let round = 0; round < ROUNDS; round++) {
      // Each third event fails at first, and a round goes by without any answer.
      receiver.behave(round % 3 === 2 ? () => undefined : failingAtFirst);
      const run = await child('run');
      t.equal(run.signal, 'SIGKILL');
      acknowledged += run.acknowledged;
    }
    receiver.behave(answering(200));
    t.equal((await child('finish')).code, 0, 'the next process delivers what is left');
    let decisions = 0;
    for await (const record of readRecords(join(dir, 'audit'))) {
      if (record.kind === 'decision' && record.plan !== undefined) decisions++;
    }
    t.ok(
      acknowledged > 0 && decisions >= acknowledged,
      `${acknowledged} acknowledged, ${decisions} on record`,
    );
    const events = new Map(
      receiver.received.map((r): [unknown, string] => [r.headers['webhook-id'], r.body]),
    );
    const bodies = [...events.values()];
    t.equal(
      bodies.map(runsIn).reduce((a, b) => a + b, 0),
      decisions,
      `${events.size} events, ${receiver.received.length} requests`,
    );
    for (const body of bodies) {
      const fields = memberIn(JSON.parse(body), 'outputs', '0', 'facets', 'columnLineage', 'fields');
      t.equal(Object.keys(fields as object).length, 1, 'each with the lineage of its columns');
    }
  },
);
