import { cpSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { directorySource, type LogSource, openAuditLog, verifyAuditLog } from '../../../audit/index.js';
import { connectTable, TableStore, tableSource } from '../../../audit/table/index.js';
import { startAuditTable } from '../../support/audit-table.js';
import { CORRUPTIONS, type Corruption } from '../corruptions.js';
import { entry, tempDir } from '../fixture.js';
import { intoDirectory, intoTable, type StoredLog, takenApart } from '../stored-log.js';

/** Each corruption of a log, in files and in a table, gets the verdict that its table says. */

const OPTIONS = { segmentBytes: 16 * 1024, checkpointRecords: 15 } as const;

async function filled(dir: string, store?: (segmentBytes: number) => TableStore): Promise<string> {
  let writer = '';
  for (let opening = 0; opening < 3; opening += 1) {
    const log = await openAuditLog({ dir, ...OPTIONS, ...(store && { store }) });
    for (let n = 0; n < 40; n += 1) await log.append(entry(n));
    writer = log.stats().writer;
    await log.close();
  }
  return writer;
}

function spoiled(whole: StoredLog, { does }: Corruption): StoredLog {
  const log = structuredClone(whole);
  // A clone of a Buffer is a Uint8Array.
  for (const segment of log.segments) {
    segment.chain = Buffer.from(segment.chain);
    for (const record of segment.records) record.chain = Buffer.from(record.chain);
  }
  does(log);
  return log;
}

async function judged(t: Tap, source: LogSource, { what, expected }: Corruption): Promise<void> {
  const { problem, integrity, completeness } = await verifyAuditLog(source);
  t.strictSame({ kind: problem?.kind ?? null, integrity, completeness }, expected, what);
}

type Tap = Pick<typeof t, 'strictSame'>;

t.ok(CORRUPTIONS.length >= 50, `${CORRUPTIONS.length} corruptions`);

t.test('in files', async (t) => {
  const dir = tempDir();
  await filled(dir);
  const whole = await takenApart(directorySource(dir));
  t.ok(whole.segments.length >= 4 && whole.lasting.length > 4);
  const copy = tempDir();
  intoDirectory(whole, join(copy, 'whole'));
  t.match(await verifyAuditLog(join(copy, 'whole')), {
    integrity: 'intact',
    completeness: 'complete',
    problem: null,
  });
  for (const [at, corruption] of CORRUPTIONS.entries()) {
    const place = join(copy, String(at));
    intoDirectory(spoiled(whole, corruption), place);
    await judged(t, directorySource(place), corruption);
  }
  rmSync(copy, { recursive: true });
});

t.test('a forged tail is marked for good by the next start', async (t) => {
  const dir = tempDir();
  await filled(dir);
  const whole = await takenApart(directorySource(dir));
  const forgery = CORRUPTIONS.find(({ what }) => what.startsWith('a forged tail'));
  if (forgery === undefined) throw new Error('there is no such corruption');
  const { records } = await verifyAuditLog(dir);
  const place = tempDir();
  intoDirectory(spoiled(whole, forgery), place);
  cpSync(join(dir, 'checkpoint.key'), join(place, 'checkpoint.key'));
  t.match(await verifyAuditLog(place), { unanchored: 3, recovered: [] });
  await (await openAuditLog({ dir: place, ...OPTIONS })).close();
  t.match(await verifyAuditLog(place), { problem: null, recovered: [{ from: records, to: records + 3 }] });
});

const table = await startAuditTable();
t.test('in a table', { skip: table === null }, async (t) => {
  if (table === null) return;
  t.teardown(() => table.stop());
  const dir = tempDir();
  const { gatewayUrl } = table;
  const store = (segmentBytes: number) =>
    new TableStore({ url: () => gatewayUrl, dir, segmentBytes, deadlineMs: 60_000 });
  const writer = await filled(dir, store);
  const session = await connectTable(() => table.readerUrl, 60_000);
  const owner = await connectTable(() => table.postgres.url, 60_000);
  t.teardown(() => Promise.all([session.end(), owner.end()]));
  const source = tableSource(session, writer);
  const whole = await takenApart(source);
  await intoTable(whole, writer, owner.query);
  t.match(await verifyAuditLog(source), { integrity: 'intact', completeness: 'complete', problem: null });
  for (const corruption of CORRUPTIONS) {
    await intoTable(spoiled(whole, corruption), writer, owner.query);
    await judged(t, source, corruption);
  }
});
