import { spawnSync } from 'node:child_process';
import * as crypto from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { CoMETRE } from '@transmute/rfc9162';
import cbor from 'cbor-web';
import t from 'tap';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl, temporary } from './support.js';

/** A receipt is kept by the command that asks, and checked by another, without the server. */

const rest = await startRest();
t.teardown(() => rest.close());
const dir = temporary();
const file = (name: string): string => join(dir, name);
const TEXT = "select id, name, email, '2026-01-31 10:30:00+00'::timestamptz as at from customer order by id";

const asked = await osl([
  ...['query', '--server', `http://127.0.0.1:${rest.port}`, '--token', await rest.test.token('user:ann')],
  ...['--receipt', file('r.txt'), '--json', TEXT],
]);
writeFileSync(file('answer.json'), asked.stdout);
copyFileSync(join(rest.test.auditDir, 'checkpoint.vkey'), file('key'));
const verify = (...more: readonly string[]) => osl(['receipt', 'verify', file('r.txt'), ...more]);
const KEY = ['--key', file('key')];
const PYTHON = join(process.cwd(), 'clients', 'receipt', 'osl_receipt.py');

t.test('the receipt is kept, and its salt for its owner alone', async (t) => {
  t.equal(asked.code, 0, asked.stderr);
  t.match(readFileSync(file('r.txt'), 'utf8'), /^c2sp\.org\/tlog-proof@v1\n/);
  t.equal(statSync(file('r.txt.salt')).mode & 0o777, 0o600);
  t.equal(JSON.parse(asked.stdout).receipt.salt, readFileSync(file('r.txt.salt'), 'utf8').trim());
  const table = await osl([
    ...['query', '--server', `http://127.0.0.1:${rest.port}`, '--token', await rest.test.token('user:ann')],
    ...['--receipt', file('t.txt'), 'select id from customer where id = 1'],
  ]);
  t.equal(table.code, 0, table.stderr);
  t.notMatch(table.stdout, /tlog-proof/, 'a table is a table');
  t.equal((await osl(['receipt', 'verify', file('t.txt'), ...KEY])).code, 0);
});

t.test('it holds, with its rows and its question', async (t) => {
  writeFileSync(file('question.json'), JSON.stringify({ osql: TEXT }));
  const run = await verify(...KEY, '--rows', file('answer.json'), '--question', file('question.json'));
  t.equal(run.code, 0, run.stderr);
  t.match(run.stdout, /^valid: record \d+ of osl-audit\//);
  t.match(run.stdout, / {2}caller {4}user:ann\n/);
  t.match(run.stdout, / {2}masked {4}customer\.email\n {2}question {2}same\n {2}rows {6}same\n/);
  const { valid, record, compared } = JSON.parse((await verify(...KEY, '--json')).stdout);
  t.match({ valid, compared }, { valid: true, compared: { rows: 'not compared', question: 'not compared' } });
  t.match(record, { subject: 'user:ann', receipt: { order: 'sequence' } });
});

t.test(
  'it is replayed: the same versions give the same objects and masks, and the SQL that was sent',
  async (t) => {
    const manifest = join(dirname(rest.test.policyFile), 'manifest.yaml');
    writeFileSync(file('question.json'), JSON.stringify({ osql: TEXT }));
    const replay = (receipt: string, model: string) =>
      osl([
        'receipt',
        'replay',
        file(receipt),
        ...KEY,
        '--question',
        file('question.json'),
        '--manifest',
        model,
      ]);
    const same = await replay('r.txt', manifest);
    t.equal(same.code, 0, same.stderr);
    t.match(same.stdout, /^the same objects: osl\.entities\.customer\nthe same masks: customer\.email\n/);
    t.match(same.stdout, / from \(select '\[redacted\]'::text as email, .* from shop\.customers /);

    const fewer = await rest.test.token('user:ada', { aclRoles: ['analyst'] });
    const byAda = await osl([
      ...['query', '--server', `http://127.0.0.1:${rest.port}`, '--token', fewer],
      ...['--receipt', file('ada.txt'), '--json', TEXT],
    ]);
    t.equal(byAda.code, 0, byAda.stderr);
    t.match(await replay('ada.txt', manifest), {
      code: 1,
      stderr: /this policy does not mask customer\.email, and the answer names it/,
    });

    const changed = temporary();
    copyFileSync(manifest, join(changed, 'manifest.yaml'));
    writeFileSync(
      join(changed, 'policy.yaml'),
      readFileSync(rest.test.policyFile, 'utf8').replace('pii: redact', 'pii: hash'),
    );
    t.match(await replay('r.txt', join(changed, 'manifest.yaml')), {
      code: 2,
      stderr: /was given under manifest .* and policy .*, and these are/,
    });
  },
);

t.test('a question for metrics is replayed too', async (t) => {
  const body = JSON.stringify({ metrics: ['revenue'] });
  const reply = await fetch(`http://127.0.0.1:${rest.port}/osl/query`, {
    method: 'POST',
    body,
    headers: {
      authorization: `Bearer ${await rest.test.token('user:ann')}`,
      'content-type': 'application/json',
      prefer: 'receipt',
    },
  });
  const { receipt } = (await reply.json()) as { receipt: { proof: string; salt: string } };
  writeFileSync(file('m.txt'), receipt.proof);
  writeFileSync(file('m.txt.salt'), receipt.salt);
  writeFileSync(file('m.json'), body);
  const run = await osl([
    ...['receipt', 'replay', file('m.txt'), ...KEY, '--question', file('m.json')],
    ...['--manifest', join(dirname(rest.test.policyFile), 'manifest.yaml')],
  ]);
  t.equal(run.code, 0, run.stderr);
  t.match(run.stdout, /^the same objects: .*osl\.metrics\.revenue.*\nthe same masks: none\n.*sum\(/s);
});

t.test('a witness tells whether the log of a receipt is the one that it knows', async (t) => {
  const noteOf = (receipt: string): string => {
    const proof = readFileSync(file(receipt), 'utf8');
    return proof.slice(proof.indexOf('\n\n') + 2);
  };
  const place = (...notes: readonly string[]): string => {
    const folder = temporary();
    for (const note of notes) {
      const [origin = '', size = ''] = note.split('\n');
      const of = join(folder, origin.slice('osl-audit/'.length));
      mkdirSync(of, { recursive: true });
      writeFileSync(join(of, `${size.padStart(16, '0')}.note`), note);
    }
    return folder;
  };
  const [first, later] = [noteOf('r.txt'), noteOf('m.txt')];
  /** The verdict of our command; the first line of the one in Python is the same up to the record. */
  const check = async (receipt: string, ...notes: readonly string[]) => {
    writeFileSync(file('notes'), notes.join(''));
    const args = [PYTHON, file(receipt), ...KEY, '--witnessed', file('notes')];
    const { status, stdout } = spawnSync('python3', args, { encoding: 'utf8' });
    const run = await osl(['receipt', 'verify', file(receipt), ...KEY, '--witness', place(...notes)]);
    t.equal(status, run.code);
    t.equal(stdout.split(': record')[0], run.stdout.split(': record')[0]);
    return run;
  };
  t.match(await check('r.txt', first), {
    code: 0,
    stdout: /^valid: .* {2}witness {3}keeps this checkpoint\n/s,
  });
  t.match(await check('r.txt', later), {
    code: 0,
    stdout: /^valid: .* {2}witness {3}keeps another checkpoint with this record/s,
  });
  t.match(await check('m.txt', first), {
    code: 0,
    stdout:
      /^valid, but not witnessed since 20\d\d-.*: record .* {2}witness {3}keeps no checkpoint with this record\n/s,
  });
  t.match(await check('m.txt', later.replace(/\w(?==\n)/, 'x')), {
    code: 0,
    stdout: /^valid, but not witnessed: .*keeps no checkpoint of this log/s,
  });
  const [origin = '', size = ''] = first.split('\n');
  const fork = `${origin}\n${size}\n${Buffer.alloc(32, 1).toString('base64')}\n`;
  const key = crypto.createPrivateKey(readFileSync(join(rest.test.auditDir, 'checkpoint.key')));
  const id = Buffer.from(readFileSync(file('key'), 'utf8').split('+')[1] ?? '', 'hex');
  const signature = Buffer.concat([id, crypto.sign(null, Buffer.from(fork), key)]).toString('base64');
  t.match(await check('r.txt', `${fork}\n\u2014 ${origin} ${signature}\n`), {
    code: 1,
    stderr: /the witness has another log with \d+ records under this name/,
  });
});

t.test('as COSE receipt it holds for libraries that are not ours', async (t) => {
  const signingKey = join(rest.test.auditDir, 'checkpoint.key');
  const exported = (receipt: string, key = signingKey) =>
    osl(['receipt', 'export', file(receipt), ...KEY, '--signing-key', key, '--cose', file('r.cose')]);
  const publicKey = crypto.createPublicKey(crypto.createPrivateKey(readFileSync(signingKey)));
  /** Root of the tree that a receipt signs; fails unless it is one, of the record, and signed. */
  const check = async (receipt: Buffer, record: Buffer): Promise<Uint8Array> => {
    const { tag, value } = cbor.decode(receipt);
    const [headers, unprotected, payload, signature] = value;
    const labels = cbor.decode(headers);
    if (tag !== 18 || payload !== null || labels.get(1) !== -8 || labels.get(395) !== 1)
      throw new Error('not a COSE receipt of a tree of RFC 9162');
    const [proof] = unprotected.get(396).get(-1);
    const [tree_size, leaf_index, inclusion_path] = cbor.decode(proof);
    const leaf = await CoMETRE.RFC9162_SHA256.leaf(record);
    const given = { log_id: '', tree_size, leaf_index, inclusion_path };
    const root = await CoMETRE.RFC9162_SHA256.verify_inclusion_proof(leaf, given);
    const signed = cbor.encode(['Signature1', headers, Buffer.alloc(0), Buffer.from(root)]);
    if (!crypto.verify(null, Buffer.from(signed), publicKey, signature))
      throw new Error('the signature is wrong');
    return root;
  };
  for (const name of ['r.txt', 'm.txt']) {
    t.match(await exported(name), {
      code: 0,
      stderr: /r\.cose is about the record in .*r\.cose\.record\.json/,
    });
    const [receipt, record] = [readFileSync(file('r.cose')), readFileSync(file('r.cose.record.json'))];
    t.equal((await check(receipt, record)).byteLength, 32, 'the root of the tree');
    for (let i = 0; i < receipt.length; i += 7) {
      const changed = Buffer.from(receipt);
      changed[i] = (changed[i] ?? 0) ^ 4;
      await t.rejects(check(changed, record), `byte ${i} of ${receipt.length}`);
    }
    await t.rejects(check(receipt, Buffer.concat([record, Buffer.from(' ')])), 'another record');
  }
  const other = file('other.key');
  writeFileSync(
    other,
    crypto.generateKeyPairSync('ed25519').privateKey.export({ type: 'pkcs8', format: 'pem' }),
  );
  t.match(await exported('r.txt', other), {
    code: 2,
    stderr: /the signing key does not belong to the verifier key/,
  });
});

t.test('what is wrong is said, with status 1', async (t) => {
  writeFileSync(file('other.json'), asked.stdout.replace('"Ada"', '"Bob"'));
  const rows = await verify(...KEY, '--rows', file('other.json'));
  t.match(rows, { code: 1, stderr: /the receipt does not hold: the rows are not those of the answer/ });
  writeFileSync(file('other-question.json'), '{"osql": "select 1"}');
  const question = await verify(...KEY, '--question', file('other-question.json'));
  t.match(question, { code: 1, stderr: /the question is not the one that was answered/ });
  const stranger = await startRest();
  copyFileSync(join(stranger.test.auditDir, 'checkpoint.vkey'), file('stranger'));
  await stranger.close();
  t.match(await verify('--key', file('stranger')), { code: 1, stderr: /not signed by the given key/ });
  writeFileSync(file('cut.txt'), readFileSync(file('r.txt'), 'utf8').slice(0, -20));
  t.match(await osl(['receipt', 'verify', file('cut.txt'), ...KEY]), { code: 1, stderr: /does not hold/ });
  t.match(await verify(...KEY, '--rows', file('answer.json'), '--salt', file('none')), { code: 2 });
});
