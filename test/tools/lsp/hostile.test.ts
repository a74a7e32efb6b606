import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { MANIFEST, POLICY } from '../../model/manifest/base.js';
import { temporary } from '../cli/support.js';
import { Editor } from './client.js';

t.setTimeout(90_000);

t.test('messages that are none do not end it', async (t) => {
  const { editor } = await Editor.start(t);
  const file = join(temporary(), 'manifest.yaml');
  await editor.open(file, MANIFEST);
  t.strictSame(await editor.diagnostics(file), []);
  const raw = (text: string): unknown => editor.child.stdin?.write(text);
  const framed = (body: string): unknown => raw(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  for (const body of [
    '{',
    'null',
    '[]',
    '"x"',
    '{}',
    '{"jsonrpc":"2.0"}',
    '{"jsonrpc":"2.0","id":{},"method":7}',
  ])
    framed(body);
  framed('{"jsonrpc":"2.0","id":901,"method":"textDocument/hover"}');
  framed(
    '{"jsonrpc":"2.0","id":902,"method":"textDocument/hover","params":{"textDocument":{"uri":"file:///%"}}}',
  );
  framed('{"jsonrpc":"2.0","id":903,"method":"no/such","params":[]}');
  framed(
    '{"jsonrpc":"2.0","method":"textDocument/didChange","params":{"textDocument":{"uri":"file:///x","version":1}}}',
  );
  framed('{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{}}');
  framed(
    '{"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"untitled:a","languageId":"yaml","version":1,"text":"entities:"}}}',
  );
  t.ok((await editor.symbols(file)).length > 3, 'it answers what follows');
  await editor.change(file, 'version: 1', 'version: 2');
  t.equal((await editor.diagnostics(file)).length, 1);
});

t.test('a header without a length is not a message, and ends nothing but itself', async (t) => {
  const { editor } = await Editor.start(t);
  const file = join(temporary(), 'manifest.yaml');
  await editor.open(file, MANIFEST);
  t.strictSame(await editor.diagnostics(file), []);
  editor.child.stdin?.write('Content-Length: x\r\n\r\n');
  editor.child.stdin?.write('Content-Type: nothing\r\n\r\n');
  t.ok((await editor.symbols(file)).length > 3);
});

t.test('shutdown and exit end it with 0, exit alone and the end of input with 1', async (t) => {
  const first = await Editor.start(t);
  await first.editor.connection.sendRequest('shutdown');
  await first.editor.connection.sendNotification('exit');
  t.equal(await first.editor.ended, 0);
  t.equal(first.editor.stderr, '');
  const second = await Editor.start(t);
  await second.editor.connection.sendNotification('exit');
  t.equal(await second.editor.ended, 1);
  const third = await Editor.start(t);
  third.editor.child.stdin?.end();
  t.equal(await third.editor.ended, 1);
});

t.test('files that are none of ours are left alone, and what is open in no folder', async (t) => {
  const { editor } = await Editor.start(t);
  const dir = temporary();
  const other = join(dir, 'docker-compose.yaml');
  const file = join(dir, 'manifest.yaml');
  await editor.open(other, 'version: "3"\nservices: {}\n');
  await editor.open(file, MANIFEST);
  await editor.diagnostics(file);
  t.notOk(editor.hasHeardOf(other));
  t.strictSame(await editor.complete(other, 'version: 1\n|'), []);
  writeFileSync(file, 'not what is open');
  const lonely = join(dir, 'q', 'x.osql');
  await editor.open(lonely, 'select x from ordr');
  t.match(await editor.diagnostics(lonely), [{ code: 'E0512' }], 'of the manifest above it, as it is open');
});

t.test('a subject that the policy does not have sees nothing, and ends nothing', async (t) => {
  const { editor } = await Editor.start(t, '--subject', 'user:nobody');
  const dir = temporary();
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), POLICY);
  const file = join(dir, 'q.osql');
  await editor.open(file, 'select id from customer');
  t.match(await editor.diagnostics(file), [{ code: 'E0512', message: /customer/ }]);
});

t.test('ten thousand entities: completion, symbols and definition do not wait for the check', async (t) => {
  const rows = (text: (i: number) => string): string =>
    Array.from({ length: 10_000 }, (_, i) => text(i)).join('\n');
  const large = `version: 1
connectors:
  db:
    kind: pglite
    tables:
${rows((i) => `      s.t${i}: { columns: { id: { type: int8 }, name: { type: text, pii: true } } }`)}
entities:
${rows((i) => `  e${i}: { source: db.s.t${i}, primary_key: [id], columns: [id, name] }`)}
`;
  const dir = temporary();
  const file = join(dir, 'manifest.yaml');
  const policy = join(dir, 'policy.yaml');
  writeFileSync(file, large);
  writeFileSync(
    policy,
    POLICY.replace('on: order, columns: "*", rows: amount > 0', 'on: e9999, columns: "*"'),
  );
  const { editor } = await Editor.start(t);
  await editor.open(file, large);
  t.strictSame(await editor.diagnostics(file), []);
  const broken = large.replace('  e5000: { source: db.s.t5000', '  e5000: { source: db.s.t5000x');
  const list = await editor.completions(file, broken.replace('  e9998: { source: ', '  e9998: { | source: '));
  t.ok(list?.items.some(({ label }) => label === 'description'));
  const [entities] = (await editor.symbols(file)).filter(({ name }) => name === 'entities');
  t.equal(entities?.children?.length, 10_000);
  t.notOk(editor.hasHeardOf(file), 'all that before the check is over');
  await editor.complete(file, `${broken}|`);
  t.match(await editor.diagnostics(file, 1), [{ message: /t5000x/ }]);
  await editor.open(policy, POLICY);
  const on = await editor.completions(policy, POLICY.replace('on: order', 'on: e77|'));
  t.ok(on?.isIncomplete && on.items.length <= 1_000, `${on?.items.length} of 10,000`);
  t.ok(on?.items.some(({ label }) => label === 'e7777'));
  t.match(
    await editor.hover(file, large.replace('  e9999: { source', '  e99|99: { source')),
    /\*\*in the clear\*\*|Who may see it/,
  );
});
