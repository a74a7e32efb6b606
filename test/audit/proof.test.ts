import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { checkProof, directorySource, type LogSource, openAuditLog, prove } from '../../audit/index.js';
import { entry, tempDir, writtenLog } from './fixture.js';

t.test('decision and outcome of every request are proved, and checked without the log', async (t) => {
  const dir = await writtenLog(40, { segmentBytes: 4096 });
  const vkey = readFileSync(join(dir, 'checkpoint.vkey'), 'utf8');
  const proofs = [];
  for (let request = 0; request < 20; request += 1) proofs.push(await prove(dir, `req-${request}`));
  rmSync(dir, { recursive: true });
  for (const [request, pair] of proofs.entries()) {
    t.same(
      pair.map(({ seq }) => seq),
      [1 + 2 * request, 2 + 2 * request],
    );
    for (const [i, { seq, text }] of pair.entries()) {
      const kind = i === 0 ? 'decision' : 'outcome';
      const expected = {
        ok: true,
        record: { request_id: `req-${request}`, kind, seq },
        checkpoint: { size: 42 },
      };
      t.match(checkProof(text, vkey), expected);
      t.match(text, /^c2sp\.org\/tlog-proof@v1\nextra \S+\nindex \d+\n(\S{44}\n)*\nosl-audit\//);
    }
  }
});

t.test('a proof that was changed anywhere does not check', async (t) => {
  const dir = await writtenLog(9);
  const vkey = readFileSync(join(dir, 'checkpoint.vkey'), 'utf8');
  const [proof] = await prove(dir, 'req-1');
  const text = proof?.text ?? '';
  t.equal(checkProof(text, vkey).ok, true);
  for (let at = 0; at < text.length; at += 1) {
    const other = text[at] === 'B' ? 'C' : 'B';
    const changed = text.slice(0, at) + other + text.slice(at + 1);
    if (checkProof(changed, vkey).ok) {
      // Only the unused low bits of a base64 tail may differ: it must decode to the same bytes.
      const line = (of: string): string => /\S+$/.exec(of.slice(0, of.indexOf('\n', at)))?.[0] ?? '';
      t.same(Buffer.from(line(changed), 'base64'), Buffer.from(line(text), 'base64'), `at ${at}`);
    }
  }
  const lines = text.split('\n');
  t.equal(checkProof(lines.toSpliced(3, 1).join('\n'), vkey).ok, false, 'a sibling less');
  t.equal(checkProof(lines.toSpliced(3, 0, lines[3] ?? '').join('\n'), vkey).ok, false, 'a sibling more');
  t.equal(checkProof('', vkey).ok, false);
});

t.test('a proof under another log’s key does not check', async (t) => {
  const [proof] = await prove(await writtenLog(3), 'req-0');
  const stranger = readFileSync(join(await writtenLog(1), 'checkpoint.vkey'), 'utf8');
  t.match(checkProof(proof?.text ?? '', stranger), { ok: false, reason: /not signed/ });
  t.throws(() => checkProof(proof?.text ?? '', 'nonsense'), TypeError);
});

t.test('only what a checkpoint covers is proved', async (t) => {
  const dir = tempDir();
  const log = await openAuditLog({ dir });
  await log.append(entry(0));
  t.same(await prove(dir, 'req-0'), [], 'not yet');
  await log.close();
  t.equal((await prove(dir, 'req-0')).length, 1);
  t.same(await prove(dir, 'req-99'), []);
});

/** A log, with a note of each segment that is read of it. */
function counted(dir: string): { readonly source: LogSource; readonly read: number[] } {
  const source = directorySource(dir);
  const read: number[] = [];
  const segment = (number: number, live: boolean): Promise<Buffer> => {
    read.push(number);
    return source.segment(number, live);
  };
  return { source: { ...source, segment }, read };
}

const REQUESTS = 1_500;

t.test('an index leads to the same proofs, and spares most of the log', async (t) => {
  const dir = await writtenLog(2 * REQUESTS, { segmentBytes: 64 * 1024 });
  const segments = readdirSync(dir).filter((name) => name.endsWith('.log')).length;
  t.ok(segments > 12, `${segments} segments`);
  const most = 3 + Math.ceil(Math.log2(segments));
  for (let request = 0; request < REQUESTS; request += 61) {
    const { source, read } = counted(dir);
    const id = `req-${request}`;
    const proofs = await prove(source, id);
    t.equal(proofs.length, 2, id);
    t.same(proofs, await prove(dir, id, { everything: true }), id);
    t.ok(new Set(read).size <= most, `${id}: ${new Set(read).size} of ${segments} segments were read`);
  }
  const { source, read } = counted(dir);
  t.same(await prove(source, 'req-none'), []);
  t.ok(new Set(read).size <= 1, 'what is in no index is not looked for but in the segment that is written');
});

t.test('an index that was changed, or is of an older version, leads to no other proof', async (t) => {
  const dir = await writtenLog(2 * REQUESTS, { segmentBytes: 64 * 1024 });
  const vkey = readFileSync(join(dir, 'checkpoint.vkey'), 'utf8');
  const whole = await prove(dir, 'req-700');
  const changes: Readonly<Record<string, (text: string) => string>> = {
    'other roots': (text) => text.replace(/"frontier":\["[0-9a-f]{8}/, '"frontier":["00000000'),
    'a root less': (text) => text.replace(/"frontier":\["[0-9a-f]{64}",?/, '"frontier":['),
    'no requests': (text) => text.replace(/,"requests":"[^"]*"/g, ''),
    'no index': () => '',
  };
  const indexes = readdirSync(dir).filter((name) => name.endsWith('.index'));
  const texts = new Map(indexes.map((name) => [name, readFileSync(join(dir, name), 'utf8')]));
  for (const [what, change] of Object.entries(changes)) {
    for (const [name, text] of texts) writeFileSync(join(dir, name), change(text));
    const proofs = await prove(dir, 'req-700');
    t.same(proofs, whole, what);
    for (const { text } of proofs) t.equal(checkProof(text, vkey).ok, true, what);
  }
});
