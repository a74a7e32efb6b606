import canonicalize from 'canonicalize';
import t from 'tap';
import { MAX_RECORD_BYTES } from '../../audit/format.js';
import { encodeRecord, encodeShortened } from '../../audit/record.js';
import { fc } from '../support/fast-check.js';
import { anyEntry } from './arbitrary.js';
import { entry } from './fixture.js';

const place = { writer: 'w', epoch: 1, seq: 7 };
t.test('a record is RFC 8785 canonical JSON', async (t) => {
  fc.assert(
    fc.property(anyEntry, (value) => {
      const encoded = encodeRecord(value, place);
      return canonicalize(JSON.parse(encoded)) === encoded;
    }),
    { numRuns: 2_000 },
  );
  t.pass();
});

t.test('what a caller leaves out is stored as null', async (t) => {
  const encoded = encodeRecord(
    {
      kind: 'event',
      request_id: 'r',
      tenant: 't',
      surface: 'cli',
      action: 'http',
      ts: '2026-01-02T03:04:05.678Z',
    },
    place,
  );
  t.equal(
    encoded,
    '{"action":"http","chain":[],"code":null,"decision":null,"duration_us":null,"epoch":1,"form":null,' +
      '"kind":"event","objects":[],"objects_omitted":0,"outcome":null,"request_id":"r","rows":null,"seq":7,' +
      '"statement_hmac":null,"subject":null,"surface":"cli","tenant":"t","ts":"2026-01-02T03:04:05.678Z",' +
      '"versions":null,"writer":"w"}',
  );
});

t.test('a missing ts is the clock, RFC 3339 UTC with milliseconds', async (t) => {
  const before = Date.now();
  const { ts } = JSON.parse(encodeRecord(entry(0), place));
  t.match(ts, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  t.ok(before <= Date.parse(ts) && Date.parse(ts) <= Date.now());
});

t.test('a lone surrogate becomes U+FFFD; escaped text that looks like one stays', async (t) => {
  for (const [given, stored] of [
    ['a\ud800b', 'a\ufffdb'],
    ['\udfff\ud800', '\ufffd\ufffd'],
    ['\\ud800', '\\ud800'],
    ['\\\ud800', '\\\ufffd'],
    ['😀', '😀'],
  ] as const) {
    t.equal(JSON.parse(encodeRecord({ ...entry(0), action: given }, place)).action, stored);
  }
});

t.test('a record that is too long loses trailing objects and says how many', async (t) => {
  const objects = Array.from({ length: 9_000 }, (_, i) => `osl.entities.é${i}`);
  const shortened = encodeShortened({ ...entry(0), objects }, place) ?? '';
  const record = JSON.parse(shortened);
  t.ok(Buffer.byteLength(shortened) <= MAX_RECORD_BYTES);
  t.ok(Buffer.byteLength(shortened) > MAX_RECORD_BYTES - 40, 'no more than needed is lost');
  t.same(record.objects, objects.slice(0, record.objects.length));
  t.equal(record.objects.length + record.objects_omitted, 9_000);
  t.equal(canonicalize(record), shortened);
});

t.test('a record that is too long without objects cannot be shortened', async (t) => {
  t.equal(encodeShortened({ ...entry(0), action: 'x'.repeat(MAX_RECORD_BYTES) }, place), null);
});
