import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { formatAge, formatDuration, grantText } from 'osl-console/parts/load/format';
import { checkProof, proofsIn } from 'osl-console/parts/proof/proof';
import { ALL, searchParameters } from 'osl-console/screens/audit/record-filter';
import { quantileOf, quotaName } from 'osl-console/screens/operations/figures';
import {
  membersOf,
  missingPages,
  NO_FILTER,
  PAGE_ROWS,
  parametersOf,
} from 'osl-console/screens/policy/matrix-filter';
import { test } from 'tap';
import { openAuditLog, prove } from '../../audit/index.js';

/** Figures that the screens of administrators compute themselves. */

/** Every proof of a log of `count` records, with its key. */
async function proofsOf(count: number): Promise<{ readonly key: string; readonly texts: readonly string[] }> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-proof-'));
  const log = await openAuditLog({ dir, tenant: 'demo' });
  for (let i = 0; i < count; i += 1)
    await log.append({
      kind: 'event',
      request_id: `r-${i}`,
      tenant: 'demo',
      surface: 'rest',
      action: `täst ${i}`,
    });
  await log.close();
  const { directorySource } = await import('../../audit/index.js');
  const key = (await directorySource(dir).verifierKey()) ?? '';
  const texts: string[] = [];
  for (let i = 0; i < count; i += 1) texts.push(...(await prove(dir, `r-${i}`)).map(({ text }) => text));
  await rm(dir, { recursive: true });
  return { key, texts };
}

test('the browser’s own check of proofs agrees with the log, for trees of every small size', async (t) => {
  for (const count of [1, 2, 3, 6, 7, 12]) {
    const { key, texts } = await proofsOf(count);
    t.equal(texts.length, count);
    for (const [i, text] of texts.entries()) {
      const verdict = await checkProof(text, key);
      t.ok(verdict.ok, `record of r-${i} of ${count}: ${JSON.stringify(verdict.steps)}`);
      t.equal(verdict.record?.['request_id'], `r-${i}`);
    }
    const together = proofsIn(texts.join(''));
    t.strictSame(together, texts, 'a file of several');
  }
});

test('whatever is changed of a proof is told', async (t) => {
  const { key, texts } = await proofsOf(5);
  const [text = ''] = texts.slice(2);
  const other = await proofsOf(2);
  const { length } = text;
  const letters = text.split('');
  for (let i = 0; i < length; i += 1) {
    const was = letters[i] ?? '';
    const changed = [...letters];
    changed[i] = was === 'A' ? 'B' : was === '\n' ? ' ' : 'A';
    const { ok } = await checkProof(changed.join(''), key);
    if (ok) t.fail(`letter ${i} (${JSON.stringify(was)}) may be another`);
  }
  t.pass(`each of ${length} letters counts`);
  t.match(await checkProof(text, other.key), {
    ok: false,
    steps: [{ ok: true }, { ok: false, what: 'The key' }],
  });
  t.match(await checkProof(text, ''), { ok: false });
  t.match(await checkProof(text, 'nonsense'), { ok: false });
  t.match(
    await checkProof(text, `${other.key}\n${key}`),
    { ok: true },
    'the key of its log is found among several',
  );
  const [another = ''] = texts.slice(3);
  const swapped = text.replace(/^index .*$/m, 'index 0');
  t.match(await checkProof(swapped, key), { ok: false }, 'another place');
  const record = /^extra .*$/m.exec(another)?.[0] ?? '';
  t.match(await checkProof(text.replace(/^extra .*$/m, record), key), { ok: false }, 'another record');
  for (const nonsense of ['', 'x', 'c2sp.org/tlog-proof@v1\n', `${text}x`, text.slice(0, -20)])
    t.match(await checkProof(nonsense, key), { ok: false, record: null });
});

test('a browser without Ed25519 says so', async (t) => {
  const { key, texts } = await proofsOf(1);
  const { importKey } = crypto.subtle;
  t.teardown(() => {
    crypto.subtle.importKey = importKey;
  });
  crypto.subtle.importKey = () => Promise.reject(new DOMException('unknown', 'NotSupportedError'));
  t.match(await checkProof(texts[0] ?? '', key), {
    ok: false,
    steps: [{ ok: true }, { ok: false, detail: 'this browser cannot read an Ed25519 key' }],
  });
});

test('quantiles of histograms', (t) => {
  const buckets = [
    { le: 0.001, count: 50 },
    { le: 0.01, count: 90 },
    { le: null, count: 100 },
  ];
  t.equal(quantileOf(buckets, 0.5), 0.001);
  t.equal(quantileOf(buckets, 0.25), 0.0005);
  t.ok(Math.abs(quantileOf(buckets, 0.7) - 0.0055) < 1e-9);
  t.equal(quantileOf(buckets, 0.99), 0.01, 'beyond the last bound nothing is known');
  t.equal(quantileOf([], 0.5), 0);
  t.end();
});

test('what is asked for', (t) => {
  t.strictSame(membersOf('user:a > agent:b'), ['user:a', 'agent:b']);
  t.strictSame(
    parametersOf({ ...NO_FILTER, object: ' email ', sees: 'anything', chain: 'user:a, agent:b' }),
    {
      object: 'email',
      subject: '',
      sees: 'clear,partly_masked,masked,aggregates',
      chain: 'user:a,agent:b',
    },
  );
  const now = Date.parse('2026-03-01T12:00:00Z');
  t.match(searchParameters({ ...ALL, since: 'hour', subject: ' user:a ' }, now), {
    subject: 'user:a',
    since: '2026-03-01T11:00:00.000Z',
  });
  t.strictSame(searchParameters({ ...ALL, request: 'r-1', subject: 'user:a' }, now), { request: 'r-1' });
  t.strictSame(missingPages(new Map(), 0, 30, 1_000), [0]);
  t.strictSame(missingPages(new Map(), PAGE_ROWS - 1, PAGE_ROWS + 1, 1_000), [0, 1]);
  t.strictSame(missingPages(new Map(), 0, 30, 0), []);
  t.end();
});

test('words', (t) => {
  t.equal(
    grantText({ on: 'person', columns: ['e-mail', 'no', 'id'], unmask: ['pii'] }),
    '- { on: person, columns: ["e-mail", "no", id], unmask: [pii] }',
  );
  const never = { used: null, ends_in_seconds: null, renews_at: null, whose: null } as const;
  const quota = { ...never, name: 'slow', most: 5, per: 'hour', window_seconds: 3_600 } as const;
  t.equal(
    quotaName({ ...quota, bucket: 'query', unit: 'ms', role: 'bi', each: 'subject' }),
    'slow: seconds of the database per hour, role bi, each subject',
  );
  t.equal(formatAge('2026-03-01T11:58:30Z', Date.parse('2026-03-01T12:00:00Z')), '90 s');
  t.equal(formatDuration(2_140), '2.1 ms');
  t.end();
});
