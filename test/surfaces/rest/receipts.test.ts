import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { type Test, test } from 'tap';
import { type AuditRecord, checkProof, type RowOrder, recordOfProof } from '../../../audit/index.js';
import { readAnswer } from '../../../cli/receipt/verify.js';
import { questionDigest, rowDigest } from '../../../src/ask/receipts/digests.js';
import { type Caller, type Frontends, startFrontends } from '../../support/frontends.js';
import { startTestService, type TestService } from '../../support/service.js';
import { newClient, transportTo } from '../mcp/support.js';
import { EVERY_TYPES, every } from './arrow/every.js';
import { readArrow } from './arrow/read.js';

/** Receipts of one answer on every surface, for values of every type. */

const PYTHON = join(process.cwd(), 'clients', 'receipt', 'osl_receipt.py');
const ANN: Caller = { subject: 'user:ann', aclRoles: ['reader'] };
const ARROW = 'application/vnd.apache.arrow.stream';
const COLUMNS = EVERY_TYPES.flatMap((type) => [`a_${type}`, `l_${type}`]);
const EVERYTHING = `select id, ${COLUMNS.join(', ')} from osl.entities.everything order by id`;

interface Receipt {
  readonly proof: string;
  readonly salt: string;
}

interface Fixture {
  readonly service: TestService;
  readonly fronts: Frontends;
  readonly dir: string;
  readonly key: string;
  readonly keyFile: string;
  post(
    body: object,
    headers?: Readonly<Record<string, string>>,
    caller?: Caller,
  ): Promise<{ readonly status: number; readonly bytes: Buffer; readonly headers: Headers }>;
  get(
    path: string,
    caller?: Caller,
  ): Promise<{ readonly status: number; readonly body: Record<string, unknown> }>;
}

async function start(t: Test): Promise<Fixture> {
  const shop = every(60);
  const policy = shop.policy.replace(
    'subjects: {',
    'subjects: { "user:bob": { ceiling: [reader] }, "user:boss": { ceiling: [reader], admin: [TENANT_ADMIN] },',
  );
  const service = await startTestService({ ...shop, policy });
  const fronts = await startFrontends(service.open);
  const dir = mkdtempSync(join(tmpdir(), 'osl-receipts-'));
  t.teardown(async () => {
    rmSync(dir, { recursive: true });
    await fronts.stop();
    await service.close();
  });
  const origin = `http://127.0.0.1:${fronts.httpPort}`;
  const keyFile = join(service.auditDir, 'checkpoint.vkey');
  const bearer = async (caller: Caller) => ({ authorization: `Bearer ${await fronts.token(caller)}` });
  return {
    service,
    fronts,
    dir,
    key: readFileSync(keyFile, 'utf8'),
    keyFile,
    post: async (body, headers = {}, caller = ANN) => {
      const response = await fetch(`${origin}/osl/query`, {
        method: 'POST',
        headers: { ...(await bearer(caller)), 'content-type': 'application/json', ...headers },
        body: JSON.stringify(body),
      });
      const bytes = Buffer.from(await response.arrayBuffer());
      return { status: response.status, bytes, headers: response.headers };
    },
    get: async (path, caller = ANN) => {
      const response = await fetch(`${origin}${path}`, { headers: await bearer(caller) });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    },
  };
}

/** The record of a receipt that holds; fails the test if it does not. */
function proven(t: Test, { key }: Fixture, { proof }: Receipt): AuditRecord {
  const verdict = checkProof(proof, key);
  if (!verdict.ok) throw new Error(verdict.reason);
  t.ok(verdict.record.receipt, 'its record has digests');
  return verdict.record;
}

async function digestOf(order: RowOrder, salt: string, file: string): Promise<string> {
  const answer = await readAnswer(file);
  const digest = rowDigest(order, Buffer.from(salt, 'base64url'), answer.columns);
  for await (const row of answer.rows()) digest.add(row);
  return digest.digest();
}

function receiptIn(bytes: Buffer): Receipt {
  const [last = ''] = bytes.toString('utf8').trimEnd().split('\n').slice(-1);
  const answer = JSON.parse(last);
  return (answer.trailer ?? answer).receipt;
}

/** A query whose values come in binary format. They are not parsed: the client's parser does not end on some of them. */
function inBinaryFormat(text: string) {
  return {
    text,
    binary: true,
    queryMode: 'extended',
    types: { getTypeParser: () => (value: unknown) => value },
  };
}

function python(args: readonly string[]): { readonly status: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync('python3', [PYTHON, ...args], { encoding: 'utf8' });
  return { status, said: `${stdout}${stderr}` };
}

test('receipts', { timeout: 240_000 }, async (t) => {
  const fixture = await start(t);
  const { post, get, dir, keyFile, fronts } = fixture;
  const kept = (name: string, content: string | Buffer): string => {
    const file = join(dir, name);
    writeFileSync(file, content);
    return file;
  };
  const body = { osql: EVERYTHING };
  const json = await post(body, { prefer: 'receipt' });
  if (json.status !== 200) throw new Error(json.bytes.toString());
  /** Arguments of a verifier for a receipt, which is kept in files. */
  const verified = (
    name: string,
    { proof, salt }: { readonly proof: string; readonly salt: string },
  ): string[] => [kept(`${name}.txt`, proof), '--key', keyFile, '--salt', kept(`${name}.salt`, salt)];
  const jsonFile = kept('answer.json', json.bytes);
  const receipt = receiptIn(json.bytes);

  await t.test('over REST, in JSON and NDJSON', async (t) => {
    t.equal(json.headers.get('preference-applied'), 'receipt');
    const record = proven(t, fixture, receipt);
    t.match(record, {
      kind: 'outcome',
      outcome: 'ok',
      subject: 'user:ann',
      chain: ['user:ann'],
      rows: 64,
      objects: ['osl.entities.everything'],
      receipt: { masked: [], masked_omitted: 0, order: 'sequence' },
    });
    t.equal(record.receipt?.rows, await digestOf('sequence', receipt.salt, jsonFile), 'the rows');
    const salt = Buffer.from(receipt.salt, 'base64url');
    t.equal(record.receipt?.question, questionDigest(salt, { kind: 'osql', text: EVERYTHING }, []));
    const lines = await post(body, { prefer: 'foo=1, receipt', accept: 'application/x-ndjson' });
    const other = receiptIn(lines.bytes);
    t.not(other.salt, receipt.salt, 'each receipt has a salt of its own');
    const file = kept('answer.ndjson', lines.bytes);
    const { receipt: digests } = proven(t, fixture, other);
    t.equal(digests?.rows, await digestOf('sequence', other.salt, file));
    t.equal(digests?.rows, await digestOf('sequence', other.salt, jsonFile), 'the same rows');
    t.notOk('receipt' in JSON.parse((await post(body)).bytes.toString()), 'none unless it is asked for');
  });

  await t.test('over REST, in Arrow, where values come in binary format', async (t) => {
    const { bytes } = await post(body, { prefer: 'receipt', accept: ARROW });
    const metadata = readArrow(bytes).batches.at(-1)?.metadata.get('osl.trailer') ?? '{}';
    const arrow: Receipt = JSON.parse(metadata).receipt;
    const record = proven(t, fixture, arrow);
    t.equal(record.receipt?.rows, await digestOf('sequence', arrow.salt, jsonFile));
  });

  await t.test('of rows without an order', async (t) => {
    const { bytes } = await post({ osql: `${EVERYTHING} desc` }, { prefer: 'receipt=multiset' });
    const backwards = receiptIn(bytes);
    const record = proven(t, fixture, backwards);
    t.equal(record.receipt?.order, 'multiset');
    t.equal(record.receipt?.rows, await digestOf('multiset', backwards.salt, jsonFile), 'in another order');
    const one = await post(
      { osql: 'select id from everything where id < 3' },
      { prefer: 'receipt=multiset' },
    );
    const fewer = proven(t, fixture, receiptIn(one.bytes)).receipt;
    const two = kept('two.json', one.bytes.toString().replace('{"id":1}', '{"id":2}'));
    t.not(
      fewer?.rows,
      await digestOf('multiset', receiptIn(one.bytes).salt, two),
      'a row twice is not two rows',
    );
  });

  await t.test('on the wire, in text and in binary format', async (t) => {
    const client = new Client({
      host: '127.0.0.1',
      port: fronts.pgPort,
      user: 'user:ann',
      password: await fronts.token(ANN),
      database: 'osl',
    });
    await client.connect();
    t.teardown(() => client.end());
    const notices: string[] = [];
    client.on('notice', ({ message }) => notices.push(message ?? ''));
    const shown = async (): Promise<string> =>
      (await client.query('show osl.receipt')).rows[0]['osl.receipt'];
    await client.query(EVERYTHING);
    t.equal(await shown(), '', 'no receipt unless the session wants it');
    await client.query('set osl.receipts = on');
    await client.query(EVERYTHING);
    const wire: Receipt = JSON.parse(await shown());
    const record = proven(t, fixture, wire);
    t.match(notices.at(-1), `receipt of request ${record.request_id}`);
    t.equal(record.receipt?.rows, await digestOf('sequence', wire.salt, jsonFile));
    const binary = COLUMNS.filter((c) => !/inet|range|tsvector|money/.test(c));
    const text = `select id, ${binary.join(', ')} from everything order by id`;
    const same = await post({ osql: text });
    await client.query(inBinaryFormat(text) as never);
    const inBinary: Receipt = JSON.parse(await shown());
    const file = kept('binary.json', same.bytes);
    t.equal(proven(t, fixture, inBinary).receipt?.rows, await digestOf('sequence', inBinary.salt, file));
    await t.rejects(client.query(inBinaryFormat('select a_inet from everything') as never), {
      message: /binary format/,
    });
    await client.query("set timezone = 'Europe/Berlin'");
    await t.rejects(client.query('select 1'), { code: '0A000', message: /TimeZone/ });
    await client.query('reset timezone');
    await client.query('begin; declare c cursor for select id from everything order by id');
    await client.query('fetch 10 from c');
    await client.query('set osl.receipts = off');
    await client.query('commit');
    await client.query('select id from everything where id = 1');
    t.equal(await shown(), '', 'an answer without a receipt has none');
  });

  await t.test('over MCP', async (t) => {
    const client = newClient('auto');
    const headers = { authorization: `Bearer ${await fronts.token(ANN)}` };
    await client.connect(transportTo({ port: fronts.httpPort }, headers));
    t.teardown(() => client.close());
    const call = {
      name: 'semantic_query',
      arguments: { osql: 'select id from everything order by id limit 5' },
    };
    t.equal((await client.callTool(call))._meta?.['osl/receipt'], undefined, 'none unless it is asked for');
    const result = await client.callTool({ ...call, _meta: { 'osl/receipt': true } });
    t.notOk('receipt' in Object(result.structuredContent), 'beside what a model reads');
    const mcp = result._meta?.['osl/receipt'] as Receipt;
    const { bytes } = await post(call.arguments);
    t.match(proven(t, fixture, mcp), {
      surface: 'mcp',
      rows: 5,
      receipt: { rows: await digestOf('sequence', mcp.salt, kept('mcp.json', bytes)) },
    });
  });

  await t.test('again, from the log', async (t) => {
    const { request_id } = proven(t, fixture, receipt);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    const own = await get(`/osl/receipts/${request_id}`);
    t.equal(own.status, 200);
    const again = { proof: String(own.body['proof']), salt: receipt.salt };
    t.strictSame(proven(t, fixture, again), proven(t, fixture, receipt), 'the same record');
    t.equal(own.body['verifier_key'], fixture.key.trim());
    t.notOk('salt' in own.body, 'without its salt');
    const bob = await get(`/osl/receipts/${request_id}`, { ...ANN, subject: 'user:bob' });
    const none = await get('/osl/receipts/00000000-0000-0000-0000-000000000000', {
      ...ANN,
      subject: 'user:bob',
    });
    t.equal(bob.status, 404, 'somebody else does not get it');
    const without = ({ request_id: _, ...rest }: Record<string, unknown>) => rest;
    t.strictSame(without(bob.body), without(none.body), 'and is not told that it is there');
    const through = { ...ANN, chain: ['user:ann', 'user:bob'] };
    t.equal((await get(`/osl/receipts/${request_id}`, through)).status, 404, 'nor who acts for its caller');
    const boss = { ...ANN, subject: 'user:boss', roles: ['TENANT_ADMIN'] };
    t.equal((await get(`/osl/receipts/${request_id}`, boss)).status, 200, 'an auditor does');
  });

  await t.test('of large values and many rows, in turns', async (t) => {
    const large = { osql: `select repeat('é', 400000) as big, id from everything order by id limit 20` };
    const { bytes } = await post(large, { prefer: 'receipt', accept: 'application/x-ndjson' });
    const digests = proven(t, fixture, receiptIn(bytes)).receipt;
    t.equal(digests?.rows, await digestOf('sequence', receiptIn(bytes).salt, kept('large.ndjson', bytes)));
    const rows = { osql: "select n, 'row ' || n as name from generate_series(1, 4096) as s(n)" };
    const many = await post(rows, { prefer: 'receipt=multiset' });
    const unordered = proven(t, fixture, receiptIn(many.bytes));
    t.equal(unordered.rows, 64 * 64);
    t.equal(
      unordered.receipt?.rows,
      await digestOf('multiset', receiptIn(many.bytes).salt, kept('many.json', many.bytes)),
    );
    const tooMany = { osql: 'select n from generate_series(1, 65536) as s(n)' };
    const unsafe = await post(tooMany, { prefer: 'receipt=multiset' });
    t.match(unsafe.bytes.toString(), /at most 65535 rows|^$/);
    const tooLarge = { osql: `select repeat('é', 600000) as big` };
    t.equal((await post(tooLarge, { prefer: 'receipt' })).status, 200);
    const refused = await post(tooLarge, { prefer: 'receipt=multiset' });
    t.match(JSON.parse(refused.bytes.toString()), { code: 'E1001', detail: /rows of at most 1 MiB/ });
  });

  await t.test('what is no preference is refused before anything is read', async (t) => {
    const blanks = `receipt=${' '.repeat(7_000)}"x"y`;
    const began = performance.now();
    t.equal((await post(body, { prefer: blanks })).status, 400);
    t.ok(performance.now() - began < 1_000, 'a long header is read once');
    const refused = await post(body, { prefer: 'receipt=later' });
    t.equal(refused.status, 400);
    t.match(JSON.parse(refused.bytes.toString()), { code: 'E0511' });
  });

  await t.test('the verifier in Python agrees', async (t) => {
    const files = verified('r', receipt);
    const question = kept('question.json', JSON.stringify(body));
    const good = python([...files, '--rows', jsonFile, '--question', question]);
    t.equal(good.status, 0, good.said);
    t.match(good.said, /^valid: record \d+ of osl-audit\//);
    const otherRows = kept('other.json', json.bytes.toString().replace('"id":7,', '"id":8,'));
    t.match(python([...files, '--rows', otherRows]), { status: 1, said: /wrong: the rows are not/ });
    const otherQuestion = kept('other-question.json', JSON.stringify({ osql: `${EVERYTHING} ` }));
    t.match(python([...files, '--question', otherQuestion]), { status: 1, said: /wrong: the question/ });
    const lines = python([
      ...files.slice(0, 3),
      '--salt',
      files[4] ?? '',
      '--rows',
      kept('x.ndjson', '{"trailer":{"columns":[]}}\n'),
    ]);
    t.equal(lines.status, 1, 'another answer');
    const multiset = await post(
      { osql: EVERYTHING },
      { prefer: 'receipt=multiset', accept: 'application/x-ndjson' },
    );
    const unordered = receiptIn(multiset.bytes);
    const [head = '', ...rest] = multiset.bytes.toString().trimEnd().split('\n');
    const turned = kept('turned.ndjson', `${[...rest.slice(0, -1), head, rest.at(-1)].join('\n')}\n`);
    t.equal(python([...verified('m', unordered), '--rows', turned]).status, 0, 'rows in another order');
  });

  await t.test('a file of a receipt has one spelling', async (t) => {
    const changed: Readonly<Record<string, string>> = {
      'lines that end as on Windows': receipt.proof.replaceAll('\n', '\r\n'),
      'digits of another script': receipt.proof.replace(/index (\d)/, 'index \u0660$1'),
      'a line of another kind': `${receipt.proof.trimEnd()}\u2028more\n`,
      'a second signature': `${receipt.proof}\u2014 other AAAA\n`,
      'nothing at its end': receipt.proof.trimEnd(),
    };
    for (const [what, text] of Object.entries(changed)) {
      t.equal(checkProof(text, fixture.key).ok, false, what);
      t.equal(python([kept('changed.txt', text), '--key', keyFile]).status, 1, `${what}, in Python`);
    }
  });

  await t.test('an answer that is not exactly the one that was given is refused', async (t) => {
    const args = [...verified('r', receipt), '--rows'];
    const text = json.bytes.toString();
    const answer = JSON.parse(text);
    const lines = [...answer.rows.map((row: unknown) => JSON.stringify(row)), ''];
    const { rows: _, ...trailer } = answer;
    const changed: Readonly<Record<string, string>> = {
      'another answer before it': `{"rows":[]}\n${text}`,
      'columns with other names': text
        .replace('"name":"a_bool"', '"name":"a_boot"')
        .replaceAll('"a_bool":', '"a_boot":'),
      'a member more in a row': text.replace('"rows":[{', '"rows":[{"more":1,'),
      'another number of rows': text.replace('"row_count":64', '"row_count":65'),
      'another request': text.replace(answer.request_id, answer.request_id.replace(/^./, 'x')),
      'a trailer in between': [`{"trailer":0}`, ...lines.slice(0, -1), JSON.stringify({ trailer }), ''].join(
        '\n',
      ),
    };
    t.equal(python([...args, jsonFile]).status, 0);
    for (const [what, content] of Object.entries(changed))
      t.equal(python([...args, kept('changed.json', content)]).status, 1, what);
  });

  await t.test('three thousand forgeries are refused by both verifiers', async (t) => {
    const others = [
      await post({ osql: 'select 1' }, { prefer: 'receipt' }),
      await post(body, { prefer: 'receipt' }),
    ];
    const proofs = others.map(({ bytes }) => receiptIn(bytes).proof);
    const forgeries = forged(receipt.proof, proofs, 3_000);
    t.strictSame(
      forgeries.filter((text) => checkProof(text, fixture.key).ok),
      [],
    );
    const driver = `
import json, sys
sys.path.insert(0, ${JSON.stringify(join(PYTHON, '..'))})
import osl_receipt
keys = osl_receipt.verifier_keys(open(sys.argv[1]).read())
for text in json.load(sys.stdin):
    try:
        osl_receipt.proven_record(text, keys)
        print("valid")
    except osl_receipt.Wrong:
        print("wrong")`;
    const said = execFileSync('python3', ['-c', driver, keyFile], {
      input: JSON.stringify([receipt.proof, ...forgeries]),
      maxBuffer: 64_000_000,
    });
    const verdicts = said.toString().trimEnd().split('\n');
    t.equal(verdicts.shift(), 'valid', 'the receipt itself is not refused');
    t.strictSame(new Set(verdicts), new Set(['wrong']));
    t.equal(verdicts.length, forgeries.length);
    t.ok(recordOfProof(receipt.proof), 'and it can be read');
  });
});

/** Distinct texts that are not `proof`: flipped bits, lost and doubled lines, parts of other proofs. Seeded. */
function forged(proof: string, others: readonly string[], count: number): readonly string[] {
  let seed = 0;
  const random = (below: number): number => {
    seed += 1;
    return createHash('sha256').update(`forgery ${seed}`).digest().readUInt32BE() % below;
  };
  const partsOf = (text: string): readonly string[] => text.split('\n');
  const ways: readonly (() => string)[] = [
    () => {
      const bytes = Buffer.from(proof);
      const at = random(bytes.length);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
      const text = bytes.toString('utf8');
      return Buffer.from(text).equals(bytes) ? text : proof; // a file that is no UTF-8 is not read
    },
    () => {
      const at = random(proof.length);
      const sort = ['0', 'A', '=', ' ', '\n', '\r', '\u2028', '\u000b', '\u0661', '\u2014'];
      return proof.slice(0, at) + (sort[random(sort.length)] ?? '') + proof.slice(at + random(2));
    },
    () =>
      partsOf(proof)
        .toSpliced(random(partsOf(proof).length - 1), 1)
        .join('\n'),
    () => {
      const at = random(partsOf(proof).length - 1);
      return partsOf(proof)
        .toSpliced(at, 0, partsOf(proof)[at] ?? '')
        .join('\n');
    },
    () => {
      const other = partsOf(others[random(others.length)] ?? '');
      const at = random(other.length - 1);
      return partsOf(proof)
        .toSpliced(at, 1, other[at] ?? '')
        .join('\n');
    },
    () => {
      const [a, b] = [random(partsOf(proof).length - 1), random(partsOf(proof).length - 1)];
      const lines = [...partsOf(proof)];
      [lines[a], lines[b]] = [lines[b] ?? '', lines[a] ?? ''];
      return lines.join('\n');
    },
    () => proof.replace(/index \d+/, `index ${random(1_000)}`),
    () => proof.slice(0, random(proof.length)),
    () =>
      proof.replace(/extra (\S+)/, (_, extra) => {
        const record = JSON.parse(Buffer.from(extra, 'base64').toString());
        const names = Object.keys(record);
        record[names[random(names.length)] ?? ''] = random(1_000_000);
        return `extra ${Buffer.from(JSON.stringify(record)).toString('base64')}`;
      }),
  ];
  const found = new Set<string>();
  while (found.size < count) {
    const text = ways[random(ways.length)]?.() ?? '';
    if (text !== proof) found.add(text);
  }
  return [...found];
}
