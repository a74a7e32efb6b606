import { write as fsWrite, readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import type { WriteAt } from '../../audit/disk.js';
import {
  type AppendDone,
  type AuditDamaged,
  type AuditGap,
  type AuditLog,
  type AuditLogOptions,
  type AuditRecord,
  type AuditUnavailable,
  checkProof,
  openAuditLog,
  readRecords,
  verifyAuditLog,
} from '../../audit/index.js';
import { entry, lastSegment, parted, tempDir, WAYS } from './fixture.js';

/** A disk that can be told how to fail, and what the log says of it. */
class Patient {
  fault: WriteAt | null = null;
  readonly dir = tempDir();
  readonly failures: AuditUnavailable[] = [];
  readonly gaps: AuditGap[] = [];
  readonly losses: AuditDamaged[] = [];

  async open(options: Partial<AuditLogOptions> = {}): Promise<AuditLog> {
    return openAuditLog({
      dir: this.dir,
      reopenMs: 10,
      write: (...args) => (this.fault ?? fsWrite)(...args),
      observer: {
        failed: (failure) => this.failures.push(failure),
        reopened: (gap) => this.gaps.push(gap),
        lost: (reason) => this.losses.push(reason),
      },
      ...options,
    });
  }

  async records(action?: string): Promise<AuditRecord[]> {
    const found: AuditRecord[] = [];
    for await (const record of readRecords(this.dir))
      if (action === undefined || record.action === action) found.push(record);
    return found;
  }
}

function failing(code: string): WriteAt {
  return (_fd, _data, _offset, _length, _position, done) => {
    setImmediate(() => done(Object.assign(new Error(`${code}: no`), { code }), 0));
  };
}

/** The log's timers do not keep a process alive; a server's sockets do. */
const alive = setInterval(() => undefined, 1_000);
t.teardown(() => clearInterval(alive));

async function until(what: () => boolean): Promise<void> {
  while (!what()) await sleep(5);
}

for (const [code, reason, way] of [
  ['EIO', 'disk', 'entry'],
  ['ENOSPC', 'full', 'form'],
] as const) {
  t.test(`after ${code} the log goes on by itself, and says for how long it did not (${way})`, async (t) => {
    const append = WAYS[way];
    const disk = new Patient();
    const log = await disk.open();
    await append(log, entry(0));
    disk.fault = failing(code);
    const before = new Date().toISOString();
    await t.rejects(append(log, entry(2)), { name: 'AuditUnavailable', reason });
    t.match(disk.failures, [{ reason }], 'told at once');
    t.match(log.stats(), { failure: { reason }, gaps: 0 });
    await t.rejects(append(log, entry(4)), { name: 'AuditUnavailable', reason }, 'refused while it lasts');
    const outcome = append(log, entry(1));
    await sleep(100);
    t.equal(disk.gaps.length, 0, 'several tries on a disk that is not well');
    disk.fault = null;
    await until(() => disk.gaps.length > 0);
    t.equal(disk.failures.length, 1, 'one outage is told once');
    t.match(log.stats(), { failure: null, gaps: 1, segment: 2 });
    t.ok(await append(log, entry(6)));
    t.ok(await outcome, 'an outcome waits');
    await log.close();
    const [gap] = await disk.records('audit.gap');
    t.match(JSON.parse(gap?.detail ?? '{}'), { reason, cause: `${code}: no`, refused: 2, outcomesKept: 1 });
    const { since, until: end } = JSON.parse(gap?.detail ?? '{}') as AuditGap;
    t.ok(before <= since && since < end);
    const records = await disk.records('query');
    t.same(
      records.map((r) => [r.request_id, r.kind]),
      [
        ['req-0', 'decision'],
        ['req-0', 'outcome'],
        ['req-3', 'decision'],
      ],
    );
    t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete', problem: null });
    const next = await disk.open();
    await next.close();
    t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete' });
  });
}

t.test('a disk that stalls and answers late: what it took stays, and says that it was refused', async (t) => {
  const disk = new Patient();
  const log = await disk.open({ deadlineMs: 2_000 }); // more than a disk that others write to takes
  await log.append(entry(0));
  const late: (() => void)[] = []; // what is signed each second is a write of its own
  disk.fault = (...args) => {
    late.push(() => fsWrite(...args));
  };
  await t.rejects(log.append(entry(2)), { name: 'AuditUnavailable', reason: 'deadline' });
  await sleep(100);
  t.equal(disk.gaps.length, 0, 'nothing is tried while a write is under way');
  disk.fault = null;
  for (const answer of late) answer();
  await until(() => disk.gaps.length > 0);
  t.ok(await log.append(entry(4)));
  await log.close();
  const told = (await disk.records('query')).map((r) => [r.request_id, r.kind, r.outcome, r.code]);
  t.same(told, [
    ['req-0', 'decision', null, null],
    ['req-1', 'decision', null, null],
    ['req-1', 'outcome', 'error', 'E5030'],
    ['req-2', 'decision', null, null],
  ]);
  t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete' });
});

t.test('a write that ends half-way is cut off, and nothing that was acknowledged is lost', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  const acknowledged = [await log.append(entry(0)), await log.append(entry(2))];
  disk.fault = (fd, data, offset, length, position, done) => {
    const half = Math.floor(length / 2);
    fsWrite(fd, data, offset, half, position, () =>
      done(Object.assign(new Error('EIO'), { code: 'EIO' }), 0),
    );
  };
  await t.rejects(log.append(entry(4)), { name: 'AuditUnavailable', reason: 'disk' });
  disk.fault = null;
  await until(() => disk.gaps.length > 0);
  await log.close();
  t.equal((await disk.records('audit.recover')).length, 1, 'the cut is on record');
  t.same(
    (await disk.records('query')).map((r) => r.seq),
    acknowledged,
  );
  t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete' });
});

t.test('no room for the next segment: it goes on when there is', async (t) => {
  const disk = new Patient();
  const log = await disk.open({ segmentBytes: 8_192 });
  disk.fault = (fd, data, offset, length, position, done) => {
    if (length >= 8_192) failing('ENOSPC')(fd, data, offset, length, position, done);
    else fsWrite(fd, data, offset, length, position, done);
  };
  let taken = 0;
  const fill = async (): Promise<void> => {
    for (; taken < 1_000; taken += 2) await log.append(entry(taken));
  };
  await t.rejects(fill(), { name: 'AuditUnavailable', reason: 'full' });
  disk.fault = null;
  await until(() => disk.gaps.length > 0);
  for (let n = 0; n < 100; n += 2) await log.append(entry(1_000 + n));
  await log.close();
  t.equal((await disk.records('query')).length, taken / 2 + 50);
  t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete' });
});

t.test('outcomes under way when the disk fails wait for it, whichever way they came', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  const standby = { as_of: '2026-01-31T10:30:00.000Z', name: 'SHOP_STANDBY_URL' };
  const ended = { ...entry(1), statement_hmac: `1.${'m'.repeat(43)}`, subject: 'é"', standby };
  await log.append(entry(0));
  const form = log.form(parted(ended).common);
  disk.fault = failing('EIO');
  const syncing = WAYS.entry(log, ended);
  const appended = (rows: number): Promise<number> =>
    new Promise((resolve, reject) => {
      const { requestId, statementHmac, durationUs } = parted(ended);
      const done: AppendDone = (error, seq) => (error ? reject(error) : resolve(seq));
      log.appendForm(form, requestId, statementHmac, rows, durationUs, done, standby);
    });
  const sharing = appended(4);
  const refused = WAYS.form(log, entry(2));
  await new Promise(setImmediate);
  const filling = appended(5);
  const others = [WAYS.entry(log, ended), WAYS.form(log, entry(4))] as const;
  await t.rejects(refused, { name: 'AuditUnavailable', reason: 'disk' });
  await t.rejects(others[1], { name: 'AuditUnavailable', reason: 'disk' });
  const during = appended(6);
  disk.fault = null;
  const seqs = await Promise.all([syncing, sharing, filling, others[0], during]);
  const after = await appended(7);
  await log.close();
  const [gap] = await disk.records('audit.gap');
  t.match(JSON.parse(gap?.detail ?? '{}'), { refused: 2, outcomesKept: 5, outcomesLost: 0 });
  const outcomes = (await disk.records('query')).filter(
    ({ kind, epoch }) => kind === 'outcome' && epoch === 2,
  );
  t.same(
    outcomes.map(({ seq, rows }) => [seq, rows]),
    [...seqs, after].map((seq, i) => [seq, [3, 4, 5, 3, 6, 7][i]]),
  );
  for (const { ts: _, rows: __, ...outcome } of outcomes)
    t.match(outcome, {
      ...parted(ended).common,
      statement_hmac: ended.statement_hmac,
      duration_us: 1200,
      standby,
    });
  t.match(await verifyAuditLog(disk.dir), { integrity: 'intact', completeness: 'complete' });
});

t.test('a disk that lost what it had acknowledged is left as it is', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  for (let n = 0; n < 20; n += 2) await log.append(entry(n));
  disk.fault = failing('EIO');
  await t.rejects(log.append(entry(20)), { name: 'AuditUnavailable', reason: 'disk' });
  const bytes = readFileSync(lastSegment(disk.dir));
  writeFileSync(lastSegment(disk.dir), bytes.subarray(0, 2_000));
  disk.fault = null;
  await until(() => disk.losses.length > 0);
  t.match(disk.losses, [{ name: 'AuditDamaged' }]);
  await sleep(50);
  t.equal(disk.gaps.length, 0);
  await t.rejects(log.append(entry(22)), { name: 'AuditUnavailable', reason: 'disk' });
  await t.rejects(log.close());
});

t.test('who waits for a proof is refused as soon as the log fails, and the record is kept', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  const outcome = { ...entry(1), ts: '2026-01-31T10:30:00.000Z' };
  const key = readFileSync(`${disk.dir}/checkpoint.vkey`, 'utf8');
  const proof = await log.appendProven(outcome);
  t.match(checkProof(proof, key), { ok: true, record: { request_id: 'req-0', kind: 'outcome' } });
  disk.fault = failing('EIO');
  const next = { ...entry(3), ts: '2026-01-31T10:30:01.000Z' };
  await t.rejects(log.appendProven(next), { name: 'AuditUnavailable' }, 'while it fails');
  await t.rejects(
    log.appendProven({ ...next, request_id: 'req-9' }),
    { name: 'AuditUnavailable' },
    'and after',
  );
  disk.fault = null;
  await until(() => log.stats().failure === null);
  t.ok(
    checkProof(await log.appendProven({ ...next, request_id: 'req-10' }), key).ok,
    'and again once it works',
  );
  await log.close();
  const kept = (await disk.records()).map(({ request_id }) => request_id);
  for (const id of ['req-0', 'req-1', 'req-9', 'req-10']) t.ok(kept.includes(id), `${id} is in the log`);
  t.equal((await verifyAuditLog(disk.dir)).problem, null);
});

/** An entry of some 60 KB; two hundred are more than a group holds. */
const large = (n: number) => ({
  ...entry(n),
  request_id: `large-${n >> 1}`,
  objects: Array.from({ length: 600 }, (_, i) => `${'o'.repeat(94)}${i}`),
});

t.test('a log with more open decisions than a group holds opens', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  for (let n = 0; n < 400; n += 2) await log.append(large(n));
  await log.close();
  await (await disk.open()).close();
  const unknown = (await disk.records('query')).filter(({ outcome }) => outcome === 'unknown');
  t.equal(unknown.length, 200);
  t.match(await verifyAuditLog(disk.dir), {
    integrity: 'intact',
    completeness: 'complete',
    openDecisions: 0,
  });
});

t.test('outcomes that wait for the disk are kept or counted as lost, however large they are', async (t) => {
  const disk = new Patient();
  const log = await disk.open();
  disk.fault = failing('EIO');
  await t.rejects(log.append(entry(0)));
  const outcomes = Array.from({ length: 200 }, (_, n) => log.append(large(2 * n + 1)));
  const ended = Promise.allSettled(outcomes);
  disk.fault = null;
  const kept = (await ended).filter(({ status }) => status === 'fulfilled').length;
  await log.close();
  const [gap] = await disk.records('audit.gap');
  t.ok(kept > 50, `${kept} are kept`);
  t.match(JSON.parse(gap?.detail ?? '{}'), { outcomesKept: kept, outcomesLost: 200 - kept });
  t.equal((await disk.records('query')).length, kept);
});
