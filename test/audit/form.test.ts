import t from 'tap';
import { MAX_RECORD_BYTES } from '../../audit/format.js';
import { type AuditEntry, openAuditLog, verifyAuditLog } from '../../audit/index.js';
import { encodeRecord, encodeShortened, RecordTemplate } from '../../audit/record.js';
import { fc } from '../support/fast-check.js';
import { anyEntry } from './arbitrary.js';
import { entry, parted, readSegmentFile, segmentPaths, tempDir, WAYS } from './fixture.js';

const place = { writer: 'w', epoch: 1, seq: 7 };

/** The record of an entry through a form, or null where the form leaves it to `append`. */
function throughForm(whole: AuditEntry, form = new RecordTemplate(parted(whole).common)): string | null {
  const { requestId, statementHmac, rows, durationUs, standby } = parted(whole);
  const record = form.record(place, requestId, statementHmac, rows, durationUs, standby);
  return record === null ? null : Buffer.from(record, 'latin1').toString();
}

function timeOf(record: string): string {
  return (JSON.parse(record) as { ts: string }).ts;
}

/** Entries that the gateway makes itself. */
const made = fc.record(
  {
    request_id: fc.uuid(),
    statement_hmac: fc.option(fc.stringMatching(/^[1-9]\.[\w-]{43}$/)),
    standby: fc.record({
      as_of: fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
      name: fc.stringMatching(/^[A-Z_0-9]{1,20}$/),
    }),
  },
  { requiredKeys: ['request_id', 'statement_hmac'] },
);

t.test('a record of a form is that of its entry', async (t) => {
  fc.assert(
    fc.property(anyEntry, made, ({ standby: _, ...any }, ours) => {
      const whole = { ...any, ...ours };
      const record = throughForm(whole) ?? '';
      return record === encodeRecord({ ...whole, ts: timeOf(record) }, place);
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

t.test('what could end its member is left to the way that escapes it', async (t) => {
  const id = '01234567-89ab-cdef-0123-456789abcdef';
  for (const odd of ['"', '\\', '\n', '\u007f', 'é', '\u0122', '\ud800', '","kind":"decision']) {
    t.equal(throughForm({ ...entry(0), request_id: id + odd }), null, JSON.stringify(odd));
    t.equal(throughForm({ ...entry(0), request_id: id, statement_hmac: odd }), null, JSON.stringify(odd));
    const standby = { as_of: '2026-01-02T03:04:05.678Z', name: odd };
    t.equal(throughForm({ ...entry(0), request_id: id, standby }), null, JSON.stringify(odd));
  }
});

t.test('a form is encoded anew for another epoch or writer', async (t) => {
  const form = new RecordTemplate(parted(entry(1)).common);
  const at = (writer: string, epoch: number) =>
    JSON.parse(form.record({ writer, epoch, seq: 1 }, 'id', null, 1, 2) ?? '');
  t.match(at('w', 1), { writer: 'w', epoch: 1 });
  t.match(at('w', 2), { writer: 'w', epoch: 2 });
  t.match(at('v', 2), { writer: 'v', epoch: 2 });
});

t.test('a log written in both ways holds the same records, and its verifier accepts it', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir, segmentBytes: 32 * 1024 });
  const { writer, epoch } = log.stats();
  const long = (count: number) => ({
    ...entry(0),
    objects: Array.from({ length: count }, (_, i) => `osl.entities.é"${i}`),
  });
  const entries = [
    ...fc.sample(anyEntry, 300),
    long(2_500), // about 60 kB
    long(9_000),
    { ...entry(1), request_id: 'é"', statement_hmac: '\\' },
  ];
  const written: AuditEntry[] = [];
  for (const { ts: _, ...whole } of entries) {
    written.push(whole, whole);
    await Promise.all([WAYS.form(log, whole), WAYS.entry(log, whole)]);
  }
  await log.close();
  const records = segmentPaths(dir)
    .flatMap((path) => readSegmentFile(path).frames)
    .slice(1, -1)
    .map(({ record }) => record.toString());
  t.equal(records.length, written.length);
  for (const [i, record] of records.entries()) {
    const at = { writer, epoch, seq: i + 1 };
    const stamped = { ...(written[i] ?? entry(0)), ts: timeOf(record) };
    const all = encodeRecord(stamped, at);
    const wanted = Buffer.byteLength(all) > MAX_RECORD_BYTES ? encodeShortened(stamped, at) : all;
    if (record !== wanted) t.equal(record, wanted, `record ${i}`);
  }
  t.match(await verifyAuditLog(dir), { integrity: 'intact', completeness: 'complete' });
});
