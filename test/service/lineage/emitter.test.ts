import { existsSync, mkdtempSync, rmSync, statSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { type AuditEntry, type AuditLog, openAuditLog } from '../../../audit/index.js';
import type { LineageEndpoint } from '../../../src/service/lineage/config/load.js';
import { ATTEMPTS } from '../../../src/service/lineage/delivery/send.js';
import { Emitter, type EmitterSettings } from '../../../src/service/lineage/emitter.js';
import { openJournal, readJournal, storeReplayRequest } from '../../../src/service/lineage/outbox/outbox.js';
import {
  endOf,
  journalIn,
  type OutboxEntry,
  OutboxState,
} from '../../../src/service/lineage/outbox/state.js';
import { endpointAt, SECRET } from './endpoint.js';
import { memberIn } from './openlineage-schema.js';
import { answering, type Receiver, runsIn, startReceiver, verifiedWith } from './receiver.js';
import { type ShiftedClock, shiftedClock } from './shifted-clock.js';

/** The outbox and its deliveries over a real audit log and real receivers; only time is put forward. */

t.setTimeout(600_000);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

interface World {
  readonly audit: AuditLog;
  readonly clock: ShiftedClock;
  readonly warnings: string[];
  readonly dir: string;
  emitter: Emitter;
  /** Runs of a statement, recorded as the service does. */
  record(plan: string, count: number): Promise<void>;
  /** The same, and read. */
  runs(plan: string, count: number): Promise<void>;
  /** Waits until the emitter has read what there is. */
  caughtUp(): Promise<void>;
  /** Lets the window end, and its events come into the outbox. */
  endWindow(): Promise<void>;
  /** Stops the emitter and starts another on what it left; `killed` leaves it as a crash would. */
  restart(killed?: boolean): Promise<void>;
}

/** The time-out is one that no busy machine meets, unless told. */
function endpointOf(receiver: Receiver, name: string, timeoutMs = 60_000): LineageEndpoint {
  return { ...endpointAt(receiver.url, name), timeoutMs };
}

async function openWorld(
  t: Test,
  endpoints: readonly LineageEndpoint[],
  more: Partial<EmitterSettings> = {},
): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-emitter-'));
  const clock = shiftedClock();
  const warnings: string[] = [];
  const audit = await openAuditLog({ dir: join(dir, 'audit'), tenant: 'x', segmentBytes: 1_048_576 });
  const settings: EmitterSettings = {
    auditDir: join(dir, 'audit'),
    dir: join(dir, 'lineage'),
    start: endOf(audit),
    identity: { producer: 'urn:test', namespace: 'osl-gateway://x' },
    agent: 'test',
    windowMs: MINUTE,
    outboxBytes: 1_048_576,
    endpoints,
    pollMs: 10,
    ...more,
  };
  const open = async (): Promise<Emitter> => {
    const emitter = await Emitter.open(
      { ...settings, start: endOf(audit) },
      clock,
      (message) => warnings.push(message),
      () => 0,
    );
    emitter.start();
    return emitter;
  };
  const world: World = {
    audit,
    clock,
    warnings,
    dir: settings.dir,
    emitter: await open(),
    runs: async (plan, count) => {
      await world.record(plan, count);
      await world.caughtUp();
    },
    record: async (plan, count) => {
      const detail = JSON.stringify({
        form: 'structured',
        objects: ['osl.entities.a'],
        masked: [],
        columns: null,
      });
      const base = { tenant: 'x', surface: 'rest', versions: { manifest: 'm', policy: 'p' }, plan } as const;
      const ts = new Date(clock.now()).toISOString();
      const appended: Promise<number>[] = [];
      for (let i = 0; i < count; i++) {
        const request = { ...base, request_id: `${plan}-${i}`, ts };
        if (i === 0)
          appended.push(audit.append({ ...request, kind: 'event', action: 'lineage.plan', detail }));
        appended.push(audit.append({ ...request, kind: 'decision', action: 'query', decision: 'allow' }));
        appended.push(audit.append({ ...request, kind: 'outcome', action: 'query', outcome: 'ok', rows: 2 }));
      }
      await Promise.all(appended);
    },
    caughtUp: async () => {
      const { records: written } = audit.stats();
      await until(() => world.emitter.seen >= written);
    },
    endWindow: async () => {
      clock.advance(MINUTE + 1);
      await sleep(120);
    },
    restart: async (killed = false) => {
      if (!killed) await world.emitter.close();
      world.emitter = await open();
    },
  };
  t.teardown(async () => {
    await world.emitter.close();
    await audit.close();
    rmSync(dir, { recursive: true, force: true });
  });
  return world;
}

/** Resolves once `holds`, which the test's own time-out bounds: an answer that was sent is yet to be read and noted. */
async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(5);
}

function count(receiver: Receiver): number {
  return receiver.received.map((r) => runsIn(r.body)).reduce((a, b) => a + b, 0);
}

t.test('an event is tried at 0, 5 s, 5 m, 30 m, 2 h, 5 h and 10 h, and then is a dead letter', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  receiver.behave(answering(500));
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  const endpoint = () => world.emitter.stats().endpoints['a'];
  await world.runs('p1', 3);
  await world.endWindow();
  await receiver.until(1);
  for (const [i, pause] of [5_000, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR].entries()) {
    await until(() => endpoint()?.failed === i + 1);
    world.clock.advance(pause - 2_000);
    await sleep(60);
    t.equal(receiver.received.length, i + 1, `not before ${pause} ms`);
    world.clock.advance(2_001);
    await receiver.until(i + 2);
  }
  await until(() => endpoint()?.dead === 1);
  await sleep(60);
  t.equal(receiver.received.length, ATTEMPTS);
  t.match(endpoint(), { pending: 0, dead: 1, failed: ATTEMPTS });
  t.ok(world.warnings.includes('a lineage event is a dead letter'));
  t.equal(new Set(receiver.received.map((r) => r.headers['webhook-id'])).size, 1, 'under one id');
  t.equal(new Set(receiver.received.map((r) => r.body)).size, 1, 'with one body');
  const times = new Set(receiver.received.map((r) => r.headers['webhook-timestamp']));
  t.equal(times.size, ATTEMPTS, 'each attempt signed for its own time');

  receiver.behave(answering(200));
  await world.restart();
  await storeReplayRequest(world.dir, { id: null, endpoint: null });
  await receiver.until(ATTEMPTS + 1);
  await until(() => endpoint()?.delivered === 1 && endpoint()?.pending === 0);
  t.equal(
    new Set(receiver.received.map((r) => r.headers['webhook-id'])).size,
    1,
    'replayed under the same id',
  );
  t.match(world.emitter.stats().endpoints['a'], { pending: 0, dead: 0, delivered: 1 });
  const last = receiver.received.at(-1);
  t.ok(last !== undefined && verifiedWith(last, [SECRET], world.clock.now()));
});

t.test('Retry-After puts an attempt off', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  receiver.behave(answering(429, { 'retry-after': '3600' }));
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  await world.runs('p1', 1);
  await world.endWindow();
  await receiver.until(1);
  await until(() => world.emitter.stats().endpoints['a']?.failed === 1);
  world.clock.advance(59 * MINUTE);
  await sleep(80);
  t.equal(receiver.received.length, 1);
  world.clock.advance(2 * MINUTE);
  await receiver.until(2);
});

t.test('410 turns an endpoint off, and replay turns it on', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  receiver.behave(answering(410));
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  await world.runs('p1', 1);
  await world.endWindow();
  await receiver.until(1);
  await until(() => world.emitter.stats().endpoints['a']?.disabled === true);
  await world.runs('p2', 1);
  await world.endWindow();
  await until(() => world.emitter.stats().endpoints['a']?.dead === 2);
  await world.restart();
  world.clock.advance(24 * HOUR);
  await sleep(100);
  t.equal(receiver.received.length, 1, 'nothing more is sent, also not after a restart');
  t.match(world.emitter.stats().endpoints['a'], { pending: 0, dead: 2, disabled: true });
  receiver.behave(answering(200));
  await storeReplayRequest(world.dir, { id: null, endpoint: 'a' });
  await receiver.until(3);
  await until(() => world.emitter.stats().endpoints['a']?.pending === 0);
  t.match(world.emitter.stats().endpoints['a'], { pending: 0, dead: 0, disabled: false });
});

t.test('one receiver that hangs does not hold up another', async (t) => {
  const [good, bad] = [await startReceiver(), await startReceiver()];
  t.teardown(() => Promise.all([good.close(), bad.close()]));
  bad.behave(() => undefined);
  const world = await openWorld(t, [endpointOf(bad, 'bad', 500), endpointOf(good, 'good')]);
  for (let i = 0; i < 30; i++) await world.runs(`p${i}`, 1);
  await world.endWindow();
  await good.until(30);
  t.ok(bad.received.length < 30, `${bad.received.length} time-outs were waited for`);
  t.match(world.emitter.stats().endpoints['bad'], { delivered: 0 });
});

t.test('a restart loses nothing and counts nothing twice', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  await world.runs('p1', 5);
  await world.restart();
  await receiver.until(1);
  await world.runs('p1', 7);
  receiver.behave(answering(503));
  await world.endWindow();
  await receiver.until(2);
  await until(() => world.emitter.stats().endpoints['a']?.failed === 1);
  await world.restart();
  receiver.behave(answering(200));
  world.clock.advance(6_000);
  await receiver.until(3);
  await sleep(60);
  t.equal(receiver.received[1]?.headers['webhook-id'], receiver.received[2]?.headers['webhook-id']);
  const bodies = new Map(receiver.received.map((r) => [r.headers['webhook-id'], r.body]));
  t.strictSame([...bodies.values()].map(runsIn).sort(), [5, 7]);
});

for (const segments of [1, 6]) {
  t.test(`a description is found that was written ${segments} segments before the outcome`, async (t) => {
    const receiver = await startReceiver();
    t.teardown(() => receiver.close());
    const world = await openWorld(t, [endpointOf(receiver, 'a')]);
    await world.runs('p1', 1);
    const described = world.audit.stats().segment;
    while (world.audit.stats().segment < described + segments) await world.runs('p2', 1_000);
    await world.endWindow();
    await receiver.until(2);
    await world.restart();
    // `PlanRecorder` does not describe a plan again for an outcome, only for a decision.
    await world.audit.append({
      tenant: 'x',
      surface: 'rest',
      versions: { manifest: 'm', policy: 'p' },
      plan: 'p1',
      ts: new Date(world.clock.now()).toISOString(),
      kind: 'outcome',
      request_id: 'late',
      action: 'query',
      outcome: 'ok',
    });
    await world.caughtUp();
    await world.endWindow();
    await receiver.until(3);
    const event = JSON.parse(receiver.received[2]?.body ?? '');
    t.strictSame(memberIn(event, 'run', 'facets', 'osl_governance', 'maskedColumns'), []);
  });
}

t.test('a run is told of once it has ended, by how it did', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  const run = { tenant: 'x', surface: 'rest', action: 'query', plan: 'p1' } as const;
  const versions = { manifest: 'm', policy: 'p' };
  const append = (entry: Pick<AuditEntry, 'kind' | 'request_id' | 'decision' | 'outcome' | 'rows'>) =>
    world.audit.append({ ...run, versions, ...entry, ts: new Date(world.clock.now()).toISOString() });
  const ids = ['ok', 'truncated', 'cancelled', 'error', 'late'];
  for (const request_id of ids) await append({ kind: 'decision', request_id, decision: 'allow' });
  await world.caughtUp();
  await world.endWindow();
  t.strictSame(receiver.received, [], 'what runs is not told of yet');
  for (const outcome of ['ok', 'truncated', 'cancelled', 'error'] as const)
    await append({ kind: 'outcome', request_id: outcome, outcome, rows: 1 });
  await world.caughtUp();
  await world.endWindow();
  await receiver.until(3);
  const told = () =>
    receiver.received
      .map(({ body }): unknown => JSON.parse(body))
      .map((event) => [
        memberIn(event, 'eventType'),
        memberIn(event, 'run', 'facets', 'osl_reads', 'outcomes'),
      ]);
  t.strictSame(told().toSorted(), [
    ['ABORT', { cancelled: 1 }],
    ['COMPLETE', { ok: 1, truncated: 1 }],
    ['FAIL', { error: 1 }],
  ]);
  await append({ kind: 'outcome', request_id: 'late', outcome: 'cancelled', rows: 0 });
  await world.caughtUp();
  await world.endWindow();
  await receiver.until(4);
  t.strictSame(told()[3], ['ABORT', { cancelled: 1 }], 'in whatever window it ends');
});

t.test('a full outbox gives up its oldest dead letters, then what is new, and says so', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  receiver.behave(answering(500));
  const world = await openWorld(t, [endpointOf(receiver, 'a')], { outboxBytes: 8_000 });
  for (let i = 0; i < 20; i++) await world.runs(`p${i}`, 1);
  await world.endWindow();
  const endpoint = () => world.emitter.stats().endpoints['a'];
  await until(() => (endpoint()?.pending ?? 0) + (endpoint()?.dropped ?? 0) >= 20);
  const { pending = 0, dropped = 0 } = endpoint() ?? {};
  t.ok(pending > 2 && pending < 10, `${pending} fit`);
  t.equal(pending + dropped, 20);
  t.ok(world.warnings.includes('lineage events are given up: the outbox is full'));
  while (endpoint()?.dead !== pending) {
    await sleep(100); // an attempt takes as long as the machine lets it, and each puts the next one off
    world.clock.advance(12 * HOUR);
  }
  await world.runs('later', 1);
  await world.endWindow();
  await until(() => endpoint()?.dropped === dropped + 1);
  t.match(world.emitter.stats().endpoints['a'], { dead: pending - 1, pending: 1, dropped: dropped + 1 });
  t.ok(world.warnings.includes('dead letters are given up: the outbox is full'));
  await world.restart();
  t.match(
    world.emitter.stats().endpoints['a'],
    { dead: pending - 1, dropped: dropped + 1 },
    'and the count is kept',
  );
});

t.test('a torn end of the journal is cut off, and what it lacks is read again', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  receiver.behave(answering(500));
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  const file = journalIn(world.dir);
  const before = statSync(file).size;
  await world.runs('p1', 4);
  await world.emitter.close();
  const whole = statSync(file).size;
  const ids = new Set<string>();
  for (const cut of [1, 20, 200, Math.floor((whole - before) / 2)]) {
    if (whole - cut <= before) continue;
    truncateSync(file, statSync(file).size - cut);
    await world.restart(true);
    await world.caughtUp();
    await world.emitter.close();
    const state = OutboxState.of(await readJournal<OutboxEntry>(file));
    for (const { body, id } of state.messages.values()) {
      ids.add(id);
      t.equal(runsIn(body), 4, `cut by ${cut}`);
    }
    t.equal(state.messages.size, 1);
  }
  t.equal(ids.size, 1, 'the event made again has the same id');
  await world.restart(true);
});

t.test('a journal does not grow with what was delivered', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')], { outboxBytes: 16 * 1_048_576 });
  const dataset = (n: number, version: number) => ({
    name: `osl.entities.e${n}`,
    description: `${version} ${'x'.repeat(5_000)}`,
    fields: [],
    columns: [],
  });
  const biggest: number[] = [];
  for (let version = 0; version < 6; version++) {
    const datasets = Array.from({ length: 200 }, (_, n) => dataset(n, version));
    await world.emitter.announce(`v${version}`, datasets);
    await receiver.until(200 * (version + 1));
    biggest.push(statSync(journalIn(world.dir)).size);
  }
  t.ok(Math.max(...biggest) < 6 * 1_048_576, `${Math.max(...biggest)} bytes at most for ${6 * 200} events`);
  await world.emitter.announce('v5', [dataset(0, 99)]);
  t.equal(receiver.received.length, 1_200, 'the same version again is not announced again');
  t.notOk(existsSync(`${journalIn(world.dir)}.new`));
});

t.test('runs of catching up are windows of their own time', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  await world.emitter.close();
  for (let i = 0; i < 3; i++) {
    await world.record('p1', 10);
    world.clock.advance(5 * MINUTE);
  }
  await world.restart(true);
  await world.endWindow();
  await receiver.until(3);
  t.equal(count(receiver), 30);
});

t.test('a version that serves again is told of again, and the same one is not', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  const dataset = (description: string) => ({ name: 'osl.entities.e', description, fields: [], columns: [] });
  for (const [version, description] of [
    ['v1', 'one'],
    ['v2', 'two'],
    ['v2', 'two'],
    ['v1', 'one'],
  ] as const) {
    await world.emitter.announce(version, [dataset(description)]);
    world.clock.advance(10);
  }
  await receiver.until(3);
  await sleep(60);
  t.equal(new Set(receiver.received.map((r) => r.headers['webhook-id'])).size, 3);
});

t.test('another audit log is read from its beginning, and one that lost its end from there', async (t) => {
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const world = await openWorld(t, [endpointOf(receiver, 'a')]);
  await world.runs('p1', 4);
  await world.emitter.close();
  const { journal, entries } = await openJournal<OutboxEntry>(journalIn(world.dir));
  const cursor = OutboxState.of(entries).cursor;
  await journal.append([{ t: 'cursor', writer: 'another', seq: 5_000, segment: 3 }], true);
  await world.restart(true);
  await world.caughtUp();
  await world.endWindow();
  await receiver.until(2);
  t.equal(count(receiver), 4 + 4, 'all of it is new to the log of another writer');
  await world.emitter.close();
  await journal.append([{ t: 'cursor', writer: cursor?.writer ?? '', seq: 5_000, segment: 3 }], true);
  await journal.close();
  await world.restart(true);
  await world.runs('p2', 3);
  await world.endWindow();
  await receiver.until(3);
  t.equal(count(receiver), 4 + 4 + 3);
  t.equal(world.warnings.filter((w) => w.includes('audit log')).length, 2);
});

t.test(
  'how far the log was read is noted, though nothing ran; announcements come one after another',
  async (t) => {
    const receiver = await startReceiver();
    t.teardown(() => receiver.close());
    const world = await openWorld(t, [endpointOf(receiver, 'a')]);
    const request = { tenant: 'x', surface: 'rest', request_id: 'r', action: 'explain' } as const;
    const seq = await world.audit.append({ ...request, kind: 'decision', decision: 'allow' });
    await world.caughtUp();
    await world.endWindow();
    await until(() => world.emitter.stats().read >= seq + 1);
    t.equal(world.emitter.stats().read, seq + 1);
    const dataset = { name: 'osl.entities.e', description: null, fields: [], columns: [] };
    await Promise.all([world.emitter.announce('v1', [dataset]), world.emitter.announce('v1', [dataset])]);
    await receiver.until(1);
    await sleep(100);
    t.equal(receiver.received.length, 1);
  },
);
