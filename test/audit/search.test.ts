import { chownSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import {
  type AuditEntry,
  type AuditFilter,
  announceRead,
  fingerprintsOf,
  openAuditLog,
  readRecords,
  searchRecords,
  undeclaredObject,
} from '../../audit/index.js';
import { ReadEventRecorder } from '../../audit/read-events.js';
import { matches } from '../../audit/search/filter.js';
import { segmentIndexes } from '../../audit/search/index-files.js';
import { candidates } from '../../audit/search/search.js';
import { tempDir } from './fixture.js';

const SUBJECTS = ['user:ann', 'user:bob', 'svc:bi'];
const OBJECTS = ['osl.entities.order', 'osl.entities.person', 'osl.metrics.revenue'];

/** Long stretches of the same, so that blocks differ. */
function entryOf(n: number): AuditEntry {
  const stretch = Math.floor(n / 1_500);
  const subject = SUBJECTS[stretch % SUBJECTS.length] ?? '';
  const object = OBJECTS[Math.floor(n / 2_100) % OBJECTS.length] ?? '';
  return {
    kind: n % 2 === 0 ? 'decision' : 'outcome',
    request_id: `req-${Math.floor(n / 2)}`,
    tenant: 'acme',
    surface: 'wire',
    action: n % 50 === 0 ? 'login' : 'query',
    subject,
    chain: stretch % 4 === 3 ? ['agent:a', subject] : [subject],
    objects: n % 50 === 0 ? [] : [object],
    decision: n % 2 === 1 ? null : n % 7 === 0 ? 'deny' : 'allow',
    code: n % 14 === 0 ? 'E2101' : null,
    ts: new Date(Date.UTC(2026, 0, 1) + n * 1_000).toISOString(),
  };
}

async function log(count: number): Promise<string> {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 1024 * 1024 });
  await Promise.all(Array.from({ length: count }, (_, n) => log.append(entryOf(n))));
  await log.close();
  return dir;
}

async function found(dir: string, filter: AuditFilter, everything = false): Promise<readonly number[]> {
  const seqs: number[] = [];
  for await (const { seq } of searchRecords(dir, filter, { everything })) seqs.push(seq);
  return seqs;
}

const FILTERS: readonly AuditFilter[] = [
  {},
  { subject: 'user:ann' },
  { subject: 'agent:a' },
  { subject: 'nobody' },
  { object: 'person' },
  { object: 'osl.metrics.revenue' },
  { object: 'person', subject: 'user:bob', decision: 'deny' },
  { since: '2026-01-01T01:00:00.000Z', until: '2026-01-01T01:10:00.000Z' },
  { since: '2026-01-01T02:00:00.000Z', action: 'login' },
  { code: 'E2101' },
  { requestId: 'req-700' },
  { kind: 'event' },
];

t.test('an index finds what reading everything finds, made by whoever looks first', async (t) => {
  const dir = await log(9_000);
  const indexes = () => readdirSync(dir).filter((name) => name.endsWith('.index'));
  t.ok(readdirSync(dir).filter((name) => name.endsWith('.log')).length >= 3, 'several segments');
  for (const filter of FILTERS) {
    const all: number[] = [];
    for await (const record of readRecords(dir)) if (matches(record, filter)) all.push(record.seq);
    t.same(await found(dir, filter), all, JSON.stringify(filter));
    t.same(await found(dir, filter, true), all, `${JSON.stringify(filter)}, everything`);
  }
  t.ok(indexes().length >= 2);
  t.ok((await found(dir, { subject: 'user:ann' })).length > 1_000, 'there is something to find');
  for (const name of indexes()) rmSync(join(dir, name));
  t.ok((await found(dir, { object: 'person' })).length > 1_000);
  t.ok(indexes().length >= 2, 'what is missing is made anew');
});

t.test('an index that does not fit its segment is read past', async (t) => {
  const dir = await log(9_000);
  const whole = await found(dir, { object: 'person' });
  const [name = ''] = readdirSync(dir).filter((file) => file.endsWith('.index'));
  const path = join(dir, name);
  const text = readFileSync(path, 'utf8');
  const spoiled: Readonly<Record<string, string>> = {
    'no JSON': text.slice(1),
    'of another format': text.replace('"format":1', '"format":2'),
    'of another chain': text.replace(/"chain":"[0-9a-f]{8}/, '"chain":"00000000'),
    'of another segment': text.replace('"segment":1', '"segment":2'),
    'with blocks elsewhere': text.replace(/"at":(\d{3,})/g, (_, at: string) => `"at":${Number(at) + 3}`),
    empty: '',
  };
  for (const [what, said] of Object.entries(spoiled)) {
    writeFileSync(path, said);
    t.same(await found(dir, { object: 'person' }), whole, what);
  }
});

t.test('a record whose list of objects was cut may have touched any', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 1024 * 1024 });
  const objects = Array.from({ length: 3_000 }, (_, n) => `osl.entities.${'x'.repeat(40)}${n}`);
  await log.append({ ...entryOf(0), objects });
  for (let n = 1; n < 3_000; n += 1) void log.append(entryOf(n));
  await log.close();
  t.same(await found(dir, { object: 'elsewhere' }), [1]);
  t.same(await found(dir, { object: 'elsewhere' }, true), [1]);
});

t.test('a reading is recorded by the log that is open, or by the next one', async (t) => {
  const dir = await log(2);
  const reading = {
    command: 'search',
    by: 'ann@desk',
    at: '2026-01-01T00:00:00.000Z',
    filter: { object: 'person' },
  };
  const readings = async () => {
    const details: unknown[] = [];
    for await (const { action, detail = '' } of searchRecords(dir, { kind: 'event' }))
      if (action === 'audit.read') details.push(JSON.parse(detail));
    return details;
  };
  await announceRead(dir, reading);
  t.same(await readings(), []);
  const long = { ...reading, filter: { object: 'x'.repeat(4_096) } };
  await t.rejects(announceRead(dir, long), /too long/, 'no reading without who read and what for');
  const next = await openAuditLog({ dir });
  await announceRead(dir, { ...reading, command: 'tail' });
  const named = (digit: string) =>
    join(dir, 'readings', `${digit.repeat(8)}-0000-4000-8000-${digit.repeat(12)}.json`);
  writeFileSync(named('0'), 'x'.repeat(9_000));
  mkdirSync(named('1')); // which nobody who announces a reading makes
  await next.close();
  const recorded = await readings();
  t.equal(recorded.length, 3);
  t.hasStrict(recorded, [reading]);
  t.match(
    recorded.find((r) => Reflect.has(r as object, 'unreadable')),
    { unreadable: 4_097 },
    'no more is read than shows that it is too large',
  );
  t.same(readdirSync(join(dir, 'readings')), [basename(named('1'))]);
});

t.test('a reading that cannot be taken away is recorded once, and holds up no other', async (t) => {
  const appended: string[] = [];
  const waiting = ['a', 'b'].map((id) => ({ id, bytes: Buffer.from('{}') }));
  const recorder = new ReadEventRecorder({
    tenant: 'acme',
    queue: {
      waiting: async () => waiting,
      recorded: (id) => (id === 'a' ? Promise.reject(new Error('not permitted')) : Promise.resolve()),
    },
    append: async ({ request_id }) => appended.push(request_id),
  });
  await recorder.close();
  t.same(appended, ['a', 'b', 'b']);
});

t.test('no index stays of a segment that is deleted while it is made', async (t) => {
  const dir = await log(12_000);
  const [segment = ''] = readdirSync(dir).filter((name) => name.endsWith('.log'));
  const pending = segmentIndexes(dir).next();
  // The writer of an index makes its temporary file after it has read the segment.
  while (!readdirSync(dir).some((name) => name.includes('.index'))) await setImmediate();
  rmSync(join(dir, segment));
  await pending;
  t.same(
    readdirSync(dir).filter((name) => name.includes('.index')),
    [],
  );
});

t.test('an announced reading belongs to whom the log belongs to', async (t) => {
  const dir = await log(1);
  if (process.getuid?.() === 0) chownSync(dir, 65_534, 65_534); // a superuser reads the log of another account
  const { uid, gid } = statSync(dir);
  await announceRead(dir, { command: 'tail', by: 'root', at: '2026-01-01T00:00:00.000Z', filter: {} });
  const place = join(dir, 'readings');
  const [file = ''] = readdirSync(place);
  for (const path of [place, join(place, file)]) t.hasStrict(statSync(path), { uid, gid }, path);
});

t.test('the records of one request are read where they stand, by indexes of any version', async (t) => {
  const dir = await log(9_000);
  const seqs = async (request: number) => found(dir, { requestId: `req-${request}` });
  const blocksRead = async (request: number): Promise<number> => {
    let blocks = 0;
    for await (const seal of segmentIndexes(dir, true))
      blocks += candidates(seal, { requestId: `req-${request}` }).length;
    return blocks;
  };
  for (const request of [0, 255, 700, 2_000, 4_499]) {
    t.same(await seqs(request), [2 * request + 1, 2 * request + 2], `req-${request}`);
    t.ok((await blocksRead(request)) <= 2, 'a decision and its outcome stand in two blocks at most');
  }
  const indexes = readdirSync(dir).filter((name) => name.endsWith('.index'));
  for (const name of indexes) {
    const path = join(dir, name);
    writeFileSync(path, readFileSync(path, 'utf8').replace(/,"requests":"[^"]*"/g, ''));
  }
  t.ok(
    (await found(dir, { subject: 'user:ann' })).length > 0,
    'an older index serves other searches as it is',
  );
  t.notMatch(readFileSync(join(dir, indexes[0] ?? ''), 'utf8'), /"requests"/);
  t.same(await seqs(700), [1_401, 1_402]);
  t.match(readFileSync(join(dir, indexes[0] ?? ''), 'utf8'), /"requests"/, 'and is made anew for this one');
});

t.test('a name that was declared nowhere is found by its fingerprint, while the key is there', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 256 * 1024 });
  const asked: number[] = [];
  for (let n = 0; n < 3_000; n += 1) {
    const objects = n % 500 === 7 ? [undeclaredObject(log.fingerprint('pg_authid'))] : [];
    const seq = await log.append({ ...entryOf(n), ts: new Date().toISOString(), objects });
    if (objects.length > 0) asked.push(seq);
  }
  await log.close();
  t.ok(readdirSync(dir).filter((name) => name.endsWith('.log')).length >= 3, 'under several keys');
  for (const everything of [false, true]) {
    t.same(await found(dir, { fingerprints: await fingerprintsOf(dir, 'pg_authid') }, everything), asked);
    t.same(await found(dir, { fingerprints: await fingerprintsOf(dir, 'pg_auth') }, everything), []);
  }
  rmSync(join(dir, 'segment-00000001.key'));
  const left = await found(dir, { fingerprints: await fingerprintsOf(dir, 'pg_authid') });
  t.ok(
    left.length > 0 && left.length < asked.length,
    'what was written under a key that was destroyed stays hidden',
  );
});

t.test('an outcome that a restart made up is no decision', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  const decision = { ...entryOf(2), kind: 'decision', decision: 'allow' } as const;
  await log.append(decision);
  // As versions wrote it that repeated the decision.
  await log.append({ ...decision, kind: 'outcome', outcome: 'unknown' });
  await log.append({ ...entryOf(4), kind: 'decision', decision: 'allow' });
  await log.append({ ...entryOf(4), kind: 'outcome', decision: 'deny', outcome: 'error', code: 'E2003' });
  await log.close();
  t.same(await found(dir, { decision: 'allow' }), [1, 3]);
  t.same(await found(dir, { outcome: 'unknown' }), [2]);
  t.same(await found(dir, { decision: 'deny' }), [4], 'a right that was lost on the way is');
});
