import { write as fsWrite } from 'node:fs';
import t from 'tap';
import type { WriteAt } from '../../audit/disk.js';
import { openAuditLog, verifyAuditLog } from '../../audit/index.js';
import { entry, tempDir, WAYS } from './fixture.js';

/** `fs.write` until `fault` is set. */
function faultyDisk(): { write: WriteAt; fault: WriteAt | null; calls: number } {
  const disk = {
    fault: null as WriteAt | null, // widened from null
    calls: 0,
    write(...args: Parameters<WriteAt>): void {
      disk.calls += 1;
      (disk.fault ?? fsWrite)(...args);
    },
  };
  return disk;
}

function failing(code: string): WriteAt {
  return (_fd, _data, _offset, _length, _position, done) => {
    setImmediate(() => done(Object.assign(new Error(code), { code }), 0));
  };
}

for (const [code, reason, way] of [
  ['EIO', 'disk', 'entry'],
  ['EIO', 'disk', 'form'],
  ['ENOSPC', 'full', 'form'],
  ['EDQUOT', 'full', 'entry'],
] as const) {
  t.test(`${code} fails a log that stays failed for good, without a second try (${way})`, async (t) => {
    const disk = faultyDisk();
    const dir = tempDir();
    const log = await openAuditLog({ dir, write: disk.write, afterFailure: 'stay' });
    await log.append(entry(0));
    disk.fault = failing(code);
    const calls = disk.calls;
    const waiting = [1, 2, 3].map((n) => WAYS[way](log, entry(n)));
    for (const append of waiting) await t.rejects(append, { name: 'AuditUnavailable', reason });
    t.equal(disk.calls, calls + 1, 'three records, one write');
    disk.fault = null;
    await t.rejects(
      WAYS[way](log, entry(4)),
      { name: 'AuditUnavailable', reason },
      'a healthy disk changes nothing',
    );
    t.equal(disk.calls, calls + 1, 'nothing more is written');
    t.equal(log.stats().failure?.reason, reason);
    await t.rejects(log.close(), { name: 'AuditUnavailable', reason });
    const next = await openAuditLog({ dir });
    t.equal(
      next.stats().durable,
      3 + 2,
      'two opens, one record, one mark of what was found, one outcome unknown',
    );
    await next.close();
    t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete' });
  });
}

t.test('a record that waits behind the failing sync is refused too', async (t) => {
  const disk = faultyDisk();
  const log = await openAuditLog({ dir: tempDir(), write: disk.write, afterFailure: 'stay' });
  disk.fault = (_fd, _data, _offset, _length, _position, done) => {
    setTimeout(() => done(Object.assign(new Error('EIO'), { code: 'EIO' }), 0), 50);
  };
  const first = log.append(entry(0));
  await new Promise((resolve) => setTimeout(resolve, 10));
  const second = WAYS.form(log, entry(1));
  await t.rejects(first, { name: 'AuditUnavailable', reason: 'disk' });
  await t.rejects(second, { name: 'AuditUnavailable', reason: 'disk' });
  await t.rejects(log.close(), { name: 'AuditUnavailable', reason: 'disk' });
});

t.test('a disk that hangs has failed at the deadline', async (t) => {
  // A real hanging write keeps the process alive; the fake one does not.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const disk = faultyDisk();
  const log = await openAuditLog({
    dir: tempDir(),
    write: disk.write,
    afterFailure: 'stay',
    deadlineMs: 2_000, // more than a disk that others write to takes
  });
  await log.append(entry(0));
  await new Promise((resolve) => setTimeout(resolve, 2_100));
  t.equal(await log.append(entry(1)), 2, 'an idle log does not expire');
  let late: (() => void) | null = null;
  disk.fault = (_fd, _data, _offset, length, _position, done) => {
    late = () => done(null, length);
  };
  await t.rejects(log.append(entry(2)), { name: 'AuditUnavailable', reason: 'deadline' });
  t.type(late, 'function');
  (late as unknown as () => void)(); // assigned in the callback above
  await t.rejects(
    log.append(entry(3)),
    { name: 'AuditUnavailable', reason: 'deadline' },
    'a late answer does not revive it',
  );
  await t.rejects(log.close(), { name: 'AuditUnavailable', reason: 'deadline' });
});

t.test('a process that stood still beyond the deadline does not blame the disk', async (t) => {
  const log = await openAuditLog({ dir: tempDir(), deadlineMs: 2_000 });
  const pending = log.append(entry(0));
  // The write is under way when the event loop stops; its answer and the timer are due together.
  await new Promise(setImmediate);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2_500);
  t.equal(await pending, 1);
  t.equal(await log.append(entry(1)), 2);
  await log.close();
});

t.test('short writes are continued, not lost', async (t) => {
  const disk = faultyDisk();
  const dir = tempDir();
  const log = await openAuditLog({ dir, write: disk.write, segmentBytes: 8192 });
  disk.fault = (fd, data, offset, length, position, done) => {
    fsWrite(fd, data, offset, Math.min(length, 100), position, done);
  };
  for (let n = 0; n < 50; n += 1) await log.append(entry(n));
  await log.close();
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete', records: 52 });
});

t.test('no room for the next segment fails the log when it is needed', async (t) => {
  const disk = faultyDisk();
  const log = await openAuditLog({
    dir: tempDir(),
    write: disk.write,
    afterFailure: 'stay',
    segmentBytes: 8192,
  });
  disk.fault = (fd, data, offset, length, position, done) => {
    // Only whole segments are that long: the spare cannot be made.
    if (length >= 8192) failing('ENOSPC')(fd, data, offset, length, position, done);
    else fsWrite(fd, data, offset, length, position, done);
  };
  let taken = 0;
  const error: unknown = await (async () => {
    for (; ; taken += 1) await log.append(entry(taken));
  })().catch((caught: unknown) => caught);
  t.match(error, { name: 'AuditUnavailable', reason: 'full' });
  t.ok(taken > 10, `${taken} records filled the segment first`);
  await t.rejects(log.close(), { name: 'AuditUnavailable', reason: 'full' });
});

t.test('a checkpoint that cannot be written fails the log', async (t) => {
  const disk = faultyDisk();
  const log = await openAuditLog({
    dir: tempDir(),
    write: disk.write,
    afterFailure: 'stay',
    checkpointRecords: 5,
  });
  disk.fault = (fd, data, offset, length, position, done) => {
    if (Buffer.from(data.buffer, data.byteOffset, 9).toString() === 'osl-audit')
      failing('EIO')(fd, data, 0, 0, 0, done);
    else fsWrite(fd, data, offset, length, position, done);
  };
  for (let n = 0; n < 5; n += 1) await log.append(entry(n));
  while (log.stats().failure === null) await new Promise((resolve) => setTimeout(resolve, 5));
  await t.rejects(log.append(entry(9)), { name: 'AuditUnavailable', reason: 'disk' });
  await t.rejects(log.close());
});

t.test('a disk full from the start gives one clear error', async (t) => {
  const opened = openAuditLog({ dir: tempDir(), write: failing('ENOSPC') });
  await t.rejects(opened, {
    name: 'AuditUnavailable',
    reason: 'full',
    message: 'the disk of the audit log is full',
  });
});

for (const way of ['entry', 'form'] as const) {
  t.test(`too much waiting refuses the newest record and keeps the rest (${way})`, async (t) => {
    const disk = faultyDisk();
    const dir = tempDir();
    const log = await openAuditLog({ dir, write: disk.write, afterFailure: 'stay' });
    const big = { ...entry(0), objects: Array.from({ length: 500 }, (_, i) => `${'o'.repeat(100)}${i}`) };
    const results = await Promise.allSettled(Array.from({ length: 200 }, () => WAYS[way](log, big)));
    const refused = results.filter((result) => result.status === 'rejected');
    t.ok(refused.length > 0 && refused.length < 100);
    for (const { reason } of refused) t.match(reason, { name: 'AuditUnavailable', reason: 'overloaded' });
    t.equal(log.stats().failure, null);
    t.ok(await WAYS[way](log, entry(1)));
    await log.close();
    t.match(await verifyAuditLog(dir), { integrity: 'intact', records: 200 - refused.length + 3 });
  });
}
