import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { auditBytes } from '../../bench/scale/audit-bytes.js';
import { measured, thousands } from './measured.js';

/** docs/scale.md: what it says is measured was measured, and its arithmetic is done again. */

const PAGE = readFileSync('docs/scale.md', 'utf8');
const CALLERS = 1_000_000;
const BUSY = 0.6;

const says = (t: Test, words: string): void => {
  t.ok(PAGE.includes(words), `says ${words}`);
};

t.test('the figures are those of bench/RESULTS.md', async (t) => {
  const wire = measured('wire.point.c64.cpu').median;
  says(t, `${wire.toFixed(1)} µs simple`);
  says(t, `${measured('wire.point.prepared.c64.cpu').median.toFixed(1)} prepared`);
  says(t, `${measured('wire.point.extended.c64.cpu').median.toFixed(1)} extended`);
  says(t, `| ${measured('rest.point.cpu').median.toFixed(0)} µs |`);
  says(t, `| ${measured('rest.point.c1.cpu').median.toFixed(0)} µs |`);
  const rates = [measured('wire.point.c64.vs_pgbouncer'), measured('rest.point.vs_handwritten')] as const;
  says(t, `${thousands(rates[0].median)} Postgres port, ${thousands(rates[1].median)} REST`);
  says(t, `| ${thousands(measured('wire.point.c64.vs_direct').against)} |`);
  says(t, `${measured('wire.idle.kib_a_session').median.toFixed(1)} KiB of the process`);
  says(t, `| ${thousands(measured('wire.idle.logins').median)} |`);
  says(t, `| ${measured('scale.compile.p50_us').median.toFixed(0)} µs |`);
  says(t, `${(measured('scale.first_access_us').median / 1_000).toFixed(1)} ms with 100,000 grants`);
  says(t, `| ${(measured('scale.load_ms').median / 1_000).toFixed(1)} s |`);
});

t.test('so are the bytes of a question in the log', async (t) => {
  const { value } = await auditBytes();
  says(t, `| ${thousands(value)} bytes |`);
});

t.test('and what is worked out from them', async (t) => {
  const [wire, rest] = [measured('wire.point.c64.cpu').median, measured('rest.point.cpu').median];
  for (const [name, seconds] of [
    ['hour', 3_600],
    ['minute', 60],
    ['second', 1],
  ] as const) {
    const line = PAGE.split('\n').find((row) => row.startsWith(`| ${name} |`)) ?? '';
    const rate = CALLERS / seconds;
    const workers = [wire, rest].map((us) => Math.ceil((rate * us) / 1_000_000 / BUSY - 1e-9));
    t.ok(line.includes(`| ${workers.join(', ')} |`), `${name}: ${workers.join(', ')} workers`);
  }
  says(
    t,
    `${((CALLERS * measured('wire.idle.kib_a_session').median) / 2 ** 20).toFixed(0)} GiB in the processes`,
  );
});
