import { test } from 'tap';
import { parseInstant } from '../../src/base/instant.js';

const TIMES: readonly (readonly [text: string, at: string | null])[] = [
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['2026-01-31T12:00', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31 12:00:00', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T12:00:00.25z', '2026-01-31T12:00:00.250Z'],
  ['2026-01-31T12:00:00+02:00', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T24:00:00Z', '2026-02-01T00:00:00.000Z'],
  ['2028-02-29', '2028-02-29T00:00:00.000Z'],
  ['2026-02-29', null],
  ['2026-02-30T00:00:00Z', null],
  ['2026-13-01', null],
  ['2026-01-31T25:00', null],
  ['2026-01-31 PST', null],
  ['2026-01-31T', null],
  ['5', null],
  ['', null],
];

test('a time without an offset is in UTC, wherever the process runs, and a day that is none is refused', (t) => {
  const zone = process.env['TZ'];
  t.teardown(() => {
    if (zone === undefined) delete process.env['TZ'];
    else process.env['TZ'] = zone;
  });
  process.env['TZ'] = 'America/New_York';
  for (const [text, at] of TIMES) {
    const ms = parseInstant(text);
    t.equal(ms === null ? null : new Date(ms).toISOString(), at, text);
  }
  t.end();
});
