import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'tap';
import { startRest } from '../fixture.js';
import { EVERY_TYPES, every } from './every.js';
import { asJson, clockText, dayText, momentText, readArrow } from './read.js';

/** A Python that has pyarrow. Debian has no package of it, so that on most machines one must be named. */
const PYTHON = process.env['OSL_TEST_PYARROW'] ?? 'python3';
const DUMP = join(process.cwd(), 'test', 'surfaces', 'rest', 'arrow', 'dump.py');

function hasPyarrow(): boolean {
  try {
    execFileSync(PYTHON, ['-c', 'import pyarrow'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

const SKIP = hasPyarrow()
  ? false
  : 'pyarrow, a second reader of Arrow, is not installed: name a Python that has it in OSL_TEST_PYARROW';

test('another implementation reads the same values', { skip: SKIP }, async (t) => {
  const rest = await startRest(every(60));
  t.teardown(() => rest.close());
  const columns = EVERY_TYPES.flatMap((type) => [`a_${type}`, `l_${type}`]);
  const osql = `SELECT id, ${columns.join(', ')} FROM osl.entities.everything ORDER BY id`;
  const headers = { accept: 'application/vnd.apache.arrow.stream' };
  const { bytes } = await rest.ask('user:ann', { osql }, { headers });
  const said = execFileSync(PYTHON, [DUMP], { input: bytes, maxBuffer: 64_000_000 }).toString('utf8');
  const [schema, ...lines] = said
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const trailer = lines.pop();
  t.match(schema, {
    a_int8: 'int64',
    a_numeric: 'string',
    a_uuid: /^extension<arrow\.uuid>|^fixed_size_binary\[16\]/,
    a_timestamptz: 'timestamp[us, tz=UTC]',
    a_interval: 'month_day_nano_interval',
    l_date: 'list<item: date32[day]>',
  });
  t.match(trailer, { row_count: 64, truncated: false });
  const ours = asJson(readArrow(bytes));
  t.equal(lines.length, ours.length);
  for (const [n, row] of lines.entries()) t.strictSame(written(row), ours[n], `row ${n + 1}`);
});

/** A row of pyarrow's numbers in the words of the JSON answer. */
function written(row: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const write = WRITE[name.slice(2)] ?? ((v: unknown) => v);
      const one = (v: unknown) => (v === null ? null : write(v));
      return [name, Array.isArray(value) && name.startsWith('l_') ? value.map(one) : one(value)];
    }),
  );
}

const WRITE: Readonly<Record<string, (value: unknown) => unknown>> = {
  date: (v) => dayText(BigInt(String(v))),
  time: (v) => clockText(BigInt(String(v))),
  timestamp: (v) => momentText(BigInt(String(v)), ''),
  timestamptz: (v) => momentText(BigInt(String(v)), 'Z'),
  uuid: (v) => String(v).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5'),
  jsonb: (v) => JSON.parse(String(v)),
};
