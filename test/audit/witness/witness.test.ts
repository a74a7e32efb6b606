import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { openAuditLog } from '../../../audit/index.js';
import {
  objectStoreWitness,
  parseCheckpointNote,
  signedHeaders,
  WITNESS_SCHEMA,
  witnessAt,
  witnessGrants,
} from '../../../audit/witness/index.js';
import { until } from '../../control/support.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { SHOP_MANIFEST, SHOP_POLICY } from '../../support/shop.js';
import { type Finished, osl, Server, temporary } from '../../tools/cli/support.js';
import { entry } from '../fixture.js';

/** Checkpoints that others keep, against an owner of the disk who has the signing key too. */

/** One query of a caller, which adds to the log of the server in `place`. */
function queryOne(place: string, server: Server): Promise<Finished> {
  const url = `http://127.0.0.1:${server.record()['httpPort']}`;
  const of = ['--server', url, '--data-dir', join(place, 'data'), '--subject', 'user:ann'];
  return osl(['query', ...of, 'select 1 as one']);
}

/** A log over the same keys and writer as `dir`, with other records: what such an owner can make. */
async function writtenAnew(dir: string, records: number): Promise<string> {
  const forged = join(temporary(), 'audit');
  mkdirSync(forged);
  for (const name of ['checkpoint.key', 'checkpoint.vkey']) cpSync(join(dir, name), join(forged, name));
  const log = await openAuditLog({ dir: forged });
  for (let n = 0; n < records; n += 1) await log.append({ ...entry(n), subject: 'user:innocent' });
  await log.close();
  return forged;
}

async function started(
  place: string,
  witness: string,
  more: Readonly<Record<string, string>> = {},
): Promise<Server> {
  writeFileSync(join(place, 'manifest.yaml'), SHOP_MANIFEST);
  writeFileSync(join(place, 'policy.yaml'), SHOP_POLICY);
  const env = {
    OSL_MANIFEST: join(place, 'manifest.yaml'),
    OSL_POLICY: join(place, 'policy.yaml'),
    OSL_AUDIT_WITNESS: witness,
    OSL_AUDIT_WITNESS_SECONDS: '1',
    ...more,
  };
  const server = new Server(['serve'], join(place, 'data'), env);
  await server.said('Ctrl-C stops');
  return server;
}

const verify = (dir: string, ...args: readonly string[]) => osl(['audit', 'verify', '--dir', dir, ...args]);

t.test(
  'a server hands its checkpoints to a directory and a webhook; a rewritten and a cut log are found',
  async (t) => {
    const received: { readonly path: string; readonly note: string; readonly signature: unknown }[] = [];
    const hook = createServer((request, response) => {
      let note = '';
      request.setEncoding('utf8').on('data', (text: string) => {
        note += text;
      });
      request.on('end', () => {
        received.push({ path: request.url ?? '', note, signature: request.headers['osl-signature'] });
        response.end();
      });
    });
    await new Promise<void>((resolve) => hook.listen(0, '127.0.0.1', resolve));
    t.teardown(() => hook.close());
    const address = hook.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const place = temporary();
    const kept = join(place, 'kept');
    const hookUrl = `http://127.0.0.1:${port}/checkpoints`;
    const server = await started(place, `${kept},${hookUrl}`, { OSL_AUDIT_WITNESS_SECRET: 's3cret' });
    const dir = join(place, 'data', 'audit');
    await until(async () => received.length > 0); // a checkpoint of the first records alone
    for (let n = 0; n < 3; n += 1) await queryOne(place, server);
    t.equal((await server.signal('SIGTERM')).code, 0);
    const notes = readdirSync(kept).flatMap((writer) => readdirSync(join(kept, writer)));
    t.ok(notes.length >= 2, `${notes.length} checkpoints in the directory`);
    t.ok(
      received.length >= 2 &&
        received.every(
          ({ path, signature }) => path === '/checkpoints' && /^sha256=/.test(String(signature)),
        ),
    );
    t.match(await verify(dir, '--witness', kept), { code: 0, stdout: /the chain holds/ });
    const size = parseCheckpointNote(received.at(-1)?.note ?? '')?.size ?? 0;

    const anew = await writtenAnew(dir, size + 20);
    t.match(await verify(anew), { code: 0 }, 'by itself it holds');
    t.match(await verify(anew, '--witness', kept), { code: 4, stdout: /problem +root/ });
    const hooked = join(place, 'hooked');
    writeFileSync(hooked, received.map(({ note }) => `${note}\n`).join(''));
    t.match(await verify(anew, '--anchor', hooked), { code: 4, stdout: /problem +root/ });
    const note = received.at(-1)?.note ?? '';
    writeFileSync(hooked, note.trimEnd());
    t.match(await verify(anew, '--anchor', hooked), { code: 4 }, 'a single one without its last newline');
    for (const text of ['', 'osl-audit', note.replaceAll('\n', '\r\n'), note.split('\n\n')[0] ?? '']) {
      writeFileSync(hooked, text);
      t.match(await verify(anew, '--anchor', hooked), { code: 2, stderr: /must contain checkpoints/ });
    }
    // As long as the first checkpoint at least, so that its root is compared, and shorter than the last.
    const short = await writtenAnew(dir, parseCheckpointNote(received[0]?.note ?? '')?.size ?? 0);
    t.match(await verify(short, '--witness', kept), { code: 4, stdout: /problem +root/ });
    const cut = join(temporary(), 'audit');
    cpSync(dir, cut, { recursive: true });
    cutBack(cut);
    t.match(await verify(cut), { code: 0 }, 'cut back with its checkpoints, by itself it holds');
    t.match(await verify(cut, '--witness', kept), { code: 5, stdout: /problem +cut/ });
    const stranger = join(temporary(), 'audit');
    await (await openAuditLog({ dir: stranger })).close();
    t.match(await verify(stranger, '--witness', kept), {
      code: 5,
      stdout: /a chain is missing: a key or a witness knows osl-audit/,
    });
  },
);

/** Leaves the first record, and the checkpoint of it that was signed once. */
function cutBack(dir: string): void {
  const [first = ''] = readdirSync(dir)
    .filter((name) => name.endsWith('.log'))
    .sort();
  const notes = readFileSync(join(dir, 'checkpoints'), 'utf8').split(/(?<=\n\n[^\n]+\n)\n/);
  const [, second = ''] = notes.filter((note) => note.includes('osl-audit'));
  const size = parseCheckpointNote(second)?.size ?? 0;
  const bytes = readFileSync(join(dir, first));
  let at = bytes.indexOf(0x0a) + 1;
  for (let record = 0; record < size; record += 1) at += 9 + bytes.readUInt16BE(at + 4) + 33;
  writeFileSync(join(dir, first), bytes.subarray(0, at));
  for (const name of readdirSync(dir))
    if (/^segment-.*\.(log|index)$/.test(name) && name !== first) rmSync(join(dir, name));
  rmSync(join(dir, 'checkpoint.latest'), { force: true });
  writeFileSync(join(dir, 'checkpoints'), `${notes[0]}\n${second}\n`);
}

t.test('a witness that does not answer delays nobody, and is told of once', async (t) => {
  const place = temporary();
  const file = join(place, 'no-directory');
  writeFileSync(file, '');
  const server = await started(place, file);
  await server.said('a witness does not take checkpoints');
  const asked = await queryOne(place, server);
  t.equal(asked.code, 0, asked.stderr);
  const { stderr } = await server.signal('SIGTERM');
  t.equal(stderr.split('a witness does not take checkpoints').length, 2);
});

t.test('another database keeps them, and its role cannot take one back', async (t) => {
  const postgres = await startNativePostgres();
  if (postgres === null) return t.comment(NO_NATIVE);
  t.teardown(() => postgres.stop());
  const { Client } = await import('pg');
  const owner = new Client({ connectionString: postgres.url });
  await owner.connect();
  await owner.query(`${WITNESS_SCHEMA}${witnessGrants('osl_reader')}`);
  const witness = witnessAt(postgres.readerUrl, {});
  const notes = ['osl-audit/w\n7\nroot\n', 'osl-audit/w\n9\nroot\n'];
  for (const note of notes)
    await witness.keep({ writer: 'w', size: parseCheckpointNote(note)?.size ?? 0, note });
  t.same(await witness.kept(), notes);
  const reader = new Client({ connectionString: postgres.readerUrl });
  await reader.connect();
  for (const sql of [
    'DELETE FROM osl_witness.checkpoint',
    'TRUNCATE osl_witness.checkpoint',
    "UPDATE osl_witness.checkpoint SET note = ''",
  ])
    await t.rejects(reader.query(sql), { code: '42501' });
  await Promise.all([witness.close(), reader.end(), owner.end()]);
});

t.test('requests to an object store are signed as its documentation signs them', async (t) => {
  const credentials = {
    accessKeyId: 'AKIAIOSFODNN7EXAMPLE',
    secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
    sessionToken: null,
  };
  const now = new Date('2013-05-24T00:00:00Z');
  const request = { region: 'us-east-1', body: new Uint8Array() } as const;
  const signature = (headers: Readonly<Record<string, string>>): string | undefined =>
    headers['authorization']?.split('Signature=')[1];
  const get = new URL('https://examplebucket.s3.amazonaws.com/test.txt');
  t.equal(
    signature(
      signedHeaders(
        { ...request, method: 'GET', url: get, headers: { range: 'bytes=0-9' } },
        credentials,
        now,
      ),
    ),
    'f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41',
  );
  const put = new URL('https://examplebucket.s3.amazonaws.com/test$file.text');
  const headers = { date: 'Fri, 24 May 2013 00:00:00 GMT', 'x-amz-storage-class': 'REDUCED_REDUNDANCY' };
  const body = Buffer.from('Welcome to Amazon S3.');
  t.equal(
    signature(signedHeaders({ ...request, method: 'PUT', url: put, headers, body }, credentials, now)),
    '98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd',
  );
  const list = new URL('https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J');
  t.equal(
    signature(signedHeaders({ ...request, method: 'GET', url: list, headers: {} }, credentials, now)),
    '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7',
  );
});

t.test('what is not a witness is said so', async (t) => {
  const aws = { AWS_ACCESS_KEY_ID: 'a', AWS_SECRET_ACCESS_KEY: 'b' };
  t.throws(() => witnessAt('ftp://x', {}), { name: 'StartProblem', message: /must name directories/ });
  t.throws(() => witnessAt('http://example.com/hook', {}), { message: /must be https/ });
  t.throws(() => witnessAt('s3://bucket/x', {}), { message: /AWS_ACCESS_KEY_ID/ });
  t.equal(witnessAt('s3://bucket/x', aws).name, 's3://bucket/x/');
  t.equal(witnessAt('https://u:secret@example.com/hook?token=x', {}).name, 'https://example.com');
  t.equal(
    objectStoreWitness({
      endpoint: 'https://x',
      region: 'r',
      bucket: 'b',
      prefix: '',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b', sessionToken: null },
    }).name,
    's3://b/',
  );
});
