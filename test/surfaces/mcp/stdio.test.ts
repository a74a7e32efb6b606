import { spawn } from 'node:child_process';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import t, { test } from 'tap';
import { BIN } from '../../tools/cli/support.js';
import { startRest } from '../rest/fixture.js';
import { call, newClient, REVISIONS, type Revision } from './support.js';

t.setTimeout(600_000);
const rest = await startRest();
const url = `http://127.0.0.1:${rest.port}`;

async function connectedAs(token: string, revision: Revision, args: readonly string[] = []) {
  const client = newClient(revision);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [BIN, 'mcp', '--server', url, ...args],
    env: { OSL_TOKEN: token, PATH: process.env['PATH'] ?? '' },
    stderr: 'ignore',
  });
  await client.connect(transport);
  return client;
}

test('osl mcp', async (t) => {
  t.teardown(() => rest.close());
  const osql = 'select id, email from osl.entities.customer order by id';

  for (const revision of REVISIONS) {
    await t.test(`a client that opens as \`${revision}\``, async (t) => {
      const client = await connectedAs(await rest.test.token('user:ann'), revision);
      t.teardown(() => client.close());
      t.equal(client.getNegotiatedProtocolVersion(), revision === 'legacy' ? '2025-11-25' : '2026-07-28');
      t.strictSame(
        (await client.listTools()).tools.map((tool) => tool.name),
        ['semantic_query', 'semantic_explain', 'semantic_schema'],
      );
      const calls = await Promise.all(
        Array.from({ length: 8 }, () => call(client, 'semantic_query', { osql })),
      );
      const plain = (await rest.ask('user:ann', { osql })).json();
      for (const { content, text, isError } of calls) {
        t.notOk(isError);
        t.strictSame(content['rows'], plain['rows']);
        t.strictSame(content['redacted_columns'], ['customer.email']);
        t.strictSame(text, content);
      }
      t.equal(new Set(calls.map((c) => c.content['request_id'])).size, 8);
      t.match((await call(client, 'semantic_explain', { osql })).content, { form: 'structured' });
      const schema = await call(client, 'semantic_schema', { parts: ['metrics'] });
      t.match(schema.content, { schema: { metrics: [{ name: 'revenue' }] }, truncated: false });
      const refused = await call(client, 'semantic_query', { osql: 'select nme from customer' });
      t.ok(refused.isError);
      t.match(refused.content, { status: 400, problem: { code: 'E0512' } });
    });
  }

  await t.test('a token that is no good is an error of each call, never an empty answer', async (t) => {
    const late = Math.floor(Date.now() / 1_000) - 1_000;
    for (const token of ['nonsense', await rest.test.token('user:ann', { issuedAt: late })]) {
      const client = await connectedAs(token, 'auto');
      for (const tool of ['semantic_query', 'semantic_explain', 'semantic_schema']) {
        const called = await call(client, tool, tool === 'semantic_schema' ? {} : { osql });
        t.ok(called.isError, tool);
        t.match(called.content, { status: 401, problem: { code: 'E3001' } });
        t.notOk('rows' in called.content || 'schema' in called.content);
      }
      await client.close();
    }
  });

  await t.test('results are cut to the size that was asked for', async (t) => {
    const client = await connectedAs(await rest.test.token('user:ann'), 'auto', ['--max-bytes', '1024']);
    const called = await call(client, 'semantic_query', { osql: 'select * from osl.entities.order' });
    t.match(called.content, { truncated: true, available_rows: 40 });
    t.ok(JSON.stringify(called.content['rows']).length <= 1_024);
    await client.close();
  });

  await t.test('an engine that is gone is an error', async (t) => {
    const other = await startRest();
    const token = await other.test.token('user:ann');
    const client = newClient('auto');
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [BIN, 'mcp', '--server', `http://127.0.0.1:${other.port}`],
        env: { OSL_TOKEN: token },
        stderr: 'ignore',
      }),
    );
    t.notOk((await call(client, 'semantic_query', { osql })).isError);
    await other.close();
    const called = await call(client, 'semantic_query', { osql });
    t.ok(called.isError);
    t.match(called.content, { status: null, problem: null, request_id: null });
    await client.close();
  });

  await t.test('a number that readers of JSON round is refused, and its text is taken', async (t) => {
    const token = await rest.test.token('user:ann');
    const child = spawn(process.execPath, [BIN, 'mcp', '--server', url], {
      env: { OSL_TOKEN: token, PATH: process.env['PATH'] ?? '' },
      stdio: 'pipe',
    });
    t.teardown(() => child.kill());
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    let lines = 0;
    const said = async (message: string): Promise<unknown> => {
      child.stdin.write(`${message}\n`);
      lines++;
      while (out.split('\n').length <= lines) await new Promise((resolve) => setTimeout(resolve, 20));
      return JSON.parse(out.split('\n')[lines - 1] ?? '');
    };
    const params = '"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}';
    await said(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{${params}}}`);
    child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    const callOf = (id: number, param: string): string =>
      `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"semantic_query","arguments":{"osql":"select $1::int8 as n","parameters":[${param}]}}}`;
    const refused = {
      result: {
        isError: true,
        structuredContent: {
          status: 400,
          problem: { code: 'E0511', sqlstate: '22003', hint: 'send it as a string' },
        },
      },
    };
    t.match(await said(callOf(2, '9007199254740993')), refused);
    t.match(await said(callOf(3, '"9007199254740993"')), {
      result: { structuredContent: { rows: [{ n: '9007199254740993' }] } },
    });
    // Rounded, this one would be exact.
    const decimal = '0.12345678901234567891';
    const long = callOf(4, decimal)
      .replace('{', `{${' '.repeat(5_000_000)}`)
      .replace(/\}$/, `${' '.repeat(1_000_000)}}`);
    t.match(await said(long), refused, 'in a long message');
    const before = lines;
    const ids = Array.from({ length: 100 }, (_, i) => 5 + i);
    child.stdin.write(ids.map((id) => `${callOf(id, decimal)}\n`).join(''));
    lines += ids.length;
    while (out.split('\n').length <= lines) await new Promise((resolve) => setTimeout(resolve, 20));
    for (const line of out.split('\n').slice(before, lines))
      t.match(JSON.parse(line), refused, 'of many calls at once');
  });

  await t.test('it ends with its input, and writes nothing but the protocol', async (t) => {
    const child = spawn(process.execPath, [BIN, 'mcp', '--server', url], {
      env: { OSL_TOKEN: 'x', PATH: process.env['PATH'] ?? '' },
      stdio: 'pipe',
    });
    let out = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      out += text;
    });
    child.stdin.write('not json\n{"jsonrpc":"2.0","id":7,"method":"ping"}\n');
    while (!out.includes('\n')) await new Promise((resolve) => setTimeout(resolve, 20));
    child.stdin.end();
    const code = await new Promise((resolve) => child.once('close', resolve));
    t.equal(code, 0);
    for (const line of out.trim().split('\n')) t.match(JSON.parse(line), { jsonrpc: '2.0' }, line);
  });
});
