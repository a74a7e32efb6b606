import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { test } from 'tap';
import { ROOT } from '../../tools/cli/support.js';
import { freshAddress, startRest } from '../rest/fixture.js';
import { type Called, call, connected, newClient, REVISIONS, transportTo } from './support.js';

const MAX_BYTES = 4_000;
t.setTimeout(600_000);
const rest = await startRest({
  mcp: { maxBytes: MAX_BYTES, hosts: ['osl.example'], origins: ['https://app.example'] },
});
const SOME = 'select id, name, email from osl.entities.customer where id <= 2 order by id';

/** A result says the same twice, and always what every result says. */
function sound({ content, text }: Called): boolean {
  const { request_id: id, row_count: rows, truncated } = content;
  return (
    JSON.stringify(content) === JSON.stringify(text) &&
    (id === null || typeof id === 'string') &&
    typeof rows === 'number' &&
    typeof truncated === 'boolean'
  );
}

test('MCP over HTTP', async (t) => {
  t.teardown(() => rest.close());

  for (const revision of REVISIONS) {
    await t.test(`a client that opens as \`${revision}\``, async (t) => {
      const client = await connected(rest, 'user:ann', revision);
      t.teardown(() => client.close());

      t.equal(client.getNegotiatedProtocolVersion(), revision === 'legacy' ? '2025-11-25' : '2026-07-28');

      await t.test('finds three tools, always in this order, none of which changes anything', async (t) => {
        const first = await client.listTools();
        t.strictSame(
          first.tools.map((tool) => tool.name),
          ['semantic_query', 'semantic_explain', 'semantic_schema'],
        );
        t.ok(first.tools.every((tool) => tool.annotations?.readOnlyHint === true));
        t.strictSame((await client.listTools()).tools, first.tools);
      });

      await t.test('is told what each argument and member means, as the page says it too', async (t) => {
        const page = readFileSync(join(ROOT, 'docs', 'mcp.md'), 'utf8');
        for (const { name, description = '', inputSchema, outputSchema } of (await client.listTools())
          .tools) {
          t.ok(description.length > 40 && page.includes(`\`${name}\``), name);
          const documents = { ...inputSchema.properties, ...Object(outputSchema?.['properties']) };
          for (const [member, about] of Object.entries(documents)) {
            const { description: text = '' } = about as { readonly description?: string };
            t.ok(text.length > 10, `${name}, ${member}: ${text}`);
            t.ok(page.includes(`\`${member}\``), `docs/mcp.md has ${member}`);
          }
        }
      });

      await t.test('gets the answer of REST, and the records of both', async (t) => {
        const called = await call(client, 'semantic_query', { osql: SOME });
        t.ok(sound(called));
        t.notOk(called.isError);
        const plain = (await rest.ask('user:ann', { osql: SOME })).json();
        const { request_id: id } = called.content;
        t.same(without(called.content), without(plain), 'member by member');
        t.match(await rest.trail(String(id)), [
          { action: 'query', subject: 'user:ann', decision: 'allow' },
          { outcome: 'ok', rows: 2 },
        ]);
      });

      await t.test('asks in all three bodies, one at a time', async (t) => {
        const bodies = [
          { sql: 'select id, email from shop.customers order by id limit 2' },
          { sql: 'select name from shop.customers where id = $1', parameters: [2] },
          { metrics: ['revenue'], group_by: ['customer__region'], order_by: ['-revenue'], limit: 1 },
        ];
        for (const body of bodies) {
          const called = await call(client, 'semantic_query', body);
          t.ok(sound(called) && !called.isError, JSON.stringify(called.content));
          t.same(without(called.content), without((await rest.ask('user:ann', body)).json()));
          const planned = await call(client, 'semantic_explain', body);
          t.match(planned.content, { form: called.content['form'], row_count: 0 });
          t.notOk('rows' in planned.content);
        }
        for (const body of [
          { osql: SOME, sql: 'select 1' },
          { osql: SOME, metrics: ['revenue'] },
        ]) {
          const called = await call(client, 'semantic_query', body);
          t.match(called, { isError: true, content: { problem: { code: 'E0513' } } }, JSON.stringify(body));
        }
        const misplaced = await call(client, 'semantic_query', { sql: 'select 1', limit: 1 });
        t.match(misplaced.content, {
          problem: { code: 'E0511', detail: '`limit` goes with `metrics` only' },
        });
        const none = await call(client, 'semantic_query', { limit: 1 });
        t.match(none, { isError: true, content: { problem: { code: 'E0511' } } }, 'no shape is no mixture');
      });

      await t.test('is asked within the process, and recorded as what it is', async (t) => {
        const osql = 'select 1 as a';
        const answered = async () =>
          /^osl_http_requests_total\{route="\/osl\/query".*\d$/m.exec(
            (await rest.send('/metrics')).text,
          )?.[0];
        await rest.ask('user:ann', { osql });
        const before = await answered();
        const { content } = await call(client, 'semantic_query', { osql });
        t.strictSame(content['rows'], [{ a: 1 }]);
        t.match(before, /\/osl\/query/);
        t.equal(await answered(), before, 'by no request of its own');
        const records = await rest.test.records(String(content['request_id']));
        t.strictSame(
          records.map((r) => `${r.surface} ${r.action}`),
          ['mcp query', 'mcp query'],
        );
      });

      await t.test('is told what is masked, and how to ask for it', async (t) => {
        const { content } = await call(client, 'semantic_query', { osql: SOME });
        const { columns, ask } = content['masked'] as { columns: string[]; ask: string };
        t.strictSame(columns, ['customer.email']);
        const [, json = ''] = /access-requests with (\{.*?\})/.exec(ask) ?? [];
        const asked = await rest.send('/osl/access-requests', {
          method: 'POST',
          body: json,
          headers: {
            authorization: `Bearer ${await rest.test.token('user:ann')}`,
            'content-type': 'application/json',
          },
        });
        t.equal(asked.status, 200, asked.text);
        const open = await call(client, 'semantic_query', {
          osql: 'select id from osl.entities.customer limit 1',
        });
        t.notOk('masked' in open.content);
      });

      await t.test('reads a resource for each entity it may see, with questions that run', async (t) => {
        const { resources } = await client.listResources();
        const seen = resources.map(({ uri }) => uri);
        t.ok(seen.includes('osl://entities/customer') && seen.includes('osl://entities/sample'), seen.join());
        for (const uri of seen) {
          const [content] = (await client.readResource({ uri })).contents;
          const { fqn, examples } = JSON.parse(
            content !== undefined && 'text' in content ? content.text : '',
          );
          t.equal(fqn, uri.replace('osl://entities/', 'osl.entities.'));
          for (const osql of examples)
            t.notOk((await call(client, 'semantic_explain', { osql })).isError, osql);
        }
        const other = await connected(rest, 'user:eu', revision);
        t.teardown(() => other.close());
        t.notOk((await other.listResources()).resources.some(({ uri }) => uri.endsWith('/sample')));
        for (const uri of ['osl://entities/sample', 'osl://entities/nothing'])
          await t.rejects(other.readResource({ uri }), /`(?:sample|nothing)` is not declared/, uri);
      });

      await t.test('sends values beside the text', async (t) => {
        const called = await call(client, 'semantic_query', {
          osql: 'select id from osl.entities.customer where id = $1 and name = $2',
          parameters: [2, 'Bo'],
        });
        t.strictSame(called.content['rows'], [{ id: 2 }]);
      });

      await t.test('hears a refusal as an error, with status and envelope', async (t) => {
        const refused: readonly (readonly [string, number, string])[] = [
          ['select nme from osl.entities.customer', 400, 'E0512'],
          ['delete from osl.entities.customer', 400, 'E0511'],
          ['select 1 / (id - id) from osl.entities.customer', 400, 'E0529'],
        ];
        for (const [osql, status, code] of refused) {
          const called = await call(client, 'semantic_query', { osql });
          t.ok(called.isError && sound(called), osql);
          t.match(called.content, { status, problem: { status, code }, row_count: 0 }, osql);
          t.equal(
            called.content['request_id'],
            (called.content['problem'] as { request_id: string }).request_id,
          );
          t.notOk('rows' in called.content, 'an error is no empty answer');
        }
        for (const subject of ['user:nil', 'user:den']) {
          const other = await connected(rest, subject, revision);
          const osql = 'select email from osl.entities.customer';
          const called = await call(other, 'semantic_query', { osql });
          t.ok(called.isError);
          t.match(called.content, {
            status: 403,
            problem: { code: subject === 'user:nil' ? 'E2102' : 'E2101' },
          });
          if (subject === 'user:nil') t.ok((await call(other, 'semantic_schema')).isError);
          await other.close();
        }
      });

      await t.test('is told what did not fit, and how to ask for less', async (t) => {
        const called = await call(client, 'semantic_query', {
          osql: 'select * from osl.entities.order order by id',
        });
        t.ok(sound(called));
        const {
          rows,
          row_count: count,
          available_rows: available,
          truncated,
          hint,
          columns,
        } = called.content;
        t.equal((rows as unknown[]).length, count);
        t.ok(Number(count) > 5 && Number(count) < 40, `${count} rows fit`);
        t.strictSame([available, truncated], [40, true]);
        t.match(hint, /40 rows fit.*LIMIT/);
        t.equal((columns as unknown[]).length, 7, 'the columns are there all the same');
        t.ok(JSON.stringify(rows).length <= MAX_BYTES);
        const [first] = rows as { id: string }[];
        t.equal(first?.id, '1', 'the first rows, in order');
      });

      await t.test('explains without running', async (t) => {
        const called = await call(client, 'semantic_explain', { osql: SOME });
        t.ok(sound(called));
        t.match(called.content, { form: 'structured', objects: ['osl.entities.customer'], row_count: 0 });
        t.notOk('rows' in called.content || 'sql' in called.content);
        const [decision] = await rest.test.records(String(called.content['request_id']));
        t.equal(decision?.action, 'explain');
        t.ok((await call(client, 'semantic_explain', { osql: 'select nme from customer' })).isError);
      });

      await t.test('reads an index of the schema, and parts of it by name', async (t) => {
        const index = await call(client, 'semantic_schema');
        t.ok(sound(index));
        t.match(index.content, { truncated: false, hint: /`names`.*`parts`/ });
        const { objects, next } = index.content['schema'] as { objects: { name: string }[]; next: unknown };
        t.match(objects[0], {
          kind: 'entity',
          name: 'customer',
          columns: ['id', 'name', 'email', 'tax_no', 'born', 'region'],
        });
        t.match(
          objects.map(({ name }) => name).join(),
          /order,product,sample,labels,revenue,order_customer,line$/,
        );
        t.equal(next, null);
        const headers = { authorization: `Bearer ${await rest.test.token('user:ann')}` };
        const whole = (await rest.send('/osl/schema?governed=true', { headers })).json();
        for (const wish of [
          { names: ['Customer', 'osl.metrics.revenue', 'pakage'] },
          { names: ['lower', 'labels'] },
          { parts: ['forms', 'metrics'] },
        ]) {
          const query = Object.entries(wish).map(
            ([name, list]) => `${name}=${encodeURIComponent(list.join())}`,
          );
          const plain = (await rest.send(`/osl/schema?governed=true&${query.join('&')}`, { headers })).json();
          t.same(
            (await call(client, 'semantic_schema', wish)).content['schema'],
            plain,
            JSON.stringify(wish),
          );
        }
        const some = await call(client, 'semantic_schema', {
          names: ['Customer', 'osl.metrics.revenue', 'regoin'],
        });
        const schema = some.content['schema'] as Record<string, { columns: unknown[] }[]>;
        t.match(schema, {
          entities: [{ name: 'customer' }],
          metrics: [{ name: 'revenue' }],
          not_found: [{ name: 'regoin' }],
        });
        t.same(Object.keys(schema).sort(), ['entities', 'metrics', 'not_found']);
        const [full] = whole['entities'] as Record<string, unknown>[];
        for (const [name, value] of Object.entries(schema['entities']?.[0] ?? {}))
          if (name !== 'columns') t.same(value, full?.[name], `${name} as in the whole`);
        const parts = await call(client, 'semantic_schema', { parts: ['functions'], names: ['date_trunc'] });
        t.match(parts.content['schema'], { functions: [{ name: 'date_trunc', units: ['microsecond'] }] });
        const large = await call(client, 'semantic_schema', { parts: ['functions'] });
        t.match(large.content, { truncated: true, hint: /larger than one result/, schema: {} });
      });

      await t.test('a name that nothing has is told of, with one that the caller may see', async (t) => {
        const lost = async (subject: string, names: readonly string[]) => {
          const other = await connected(rest, subject, revision);
          const { isError, content } = await call(other, 'semantic_schema', { names });
          await other.close();
          return { isError, ...(content as { problem?: Record<string, unknown>; schema?: unknown }) };
        };
        const wrong = await lost('user:ann', ['custmer']);
        t.match(wrong, {
          isError: true,
          status: 400,
          problem: {
            code: 'E0512',
            detail: 'object `custmer` is not declared',
            hint: 'perhaps you meant `customer`',
          },
        });
        // An entity that is hidden is nothing, by its own name and as what may have been meant.
        for (const name of ['sample', 'nothing']) {
          const hidden = await lost('user:eu', [name]);
          const detail = `object \`${name}\` is not declared`;
          t.match(hidden, { isError: true, problem: { code: 'E0512', detail, hint: null } }, name);
        }
        t.match(await lost('user:eu', ['customer', 'samples']), {
          isError: false,
          schema: { entities: [{ name: 'customer' }], not_found: [{ name: 'samples' }] },
        });
        t.notMatch(
          JSON.stringify(await lost('user:eu', ['samples', 'customer'])),
          '"near"',
          'nor is it near',
        );
      });

      await t.test(
        'hears what is wrong with arguments as REST says it: code, envelope, record',
        async (t) => {
          type Wrong = readonly [string, Record<string, unknown>, RegExp, RegExp | null, string | null];
          const wrong: readonly Wrong[] = [
            ['semantic_query', {}, /^the body has none of/, null, null],
            ['semantic_query', { osql: 1 }, /^`osql` must be a string$/, null, '/osql'],
            ['semantic_query', { osq: 'select 1' }, /^the tool has no argument `osq`$/, /`osql`/, '/osq'],
            [
              'semantic_query',
              { osql: 'select 1', explain: true },
              /no argument `explain`$/,
              /^known are `osql`/,
              '/explain',
            ],
            [
              'semantic_explain',
              { osql: 'select 1', upstream: 'plan' },
              /no argument `upstream`$/,
              /^known are/,
              '/upstream',
            ],
            [
              'semantic_query',
              { metrics: ['revenue'], limit: -1 },
              /^`limit` must be a whole number from 0/,
              null,
              '/limit',
            ],
            [
              'semantic_query',
              { metrics: ['revenue'], group_by: [{ nme: 'x' }] },
              /`name` is missing|has name/,
              null,
              '/group_by/0/name',
            ],
            [
              'semantic_query',
              { osql: 'select $1', parameters: [[1]] },
              /^parameter \$1 must be/,
              null,
              '/parameters/0',
            ],
            ['semantic_query', { osql: 'select 1', limit: 1 }, /^`limit` goes with/, null, '/limit'],
            ['semantic_query', { 'a/b': 1 }, /^the tool has no argument `a\/b`$/, /^known are/, '/a~1b'],
            [
              'semantic_query',
              { ['n'.repeat(2_000)]: 1 },
              /^the tool has no argument `n{64}`$/,
              /^known/,
              null,
            ],
            [
              'semantic_schema',
              { name: ['customer'] },
              /^the tool has no argument `name`$/,
              /`names`/,
              '/name',
            ],
            ['semantic_schema', { names: 7 }, /^`names` must be a list of names$/, null, '/names'],
            [
              'semantic_schema',
              { parts: ['row'] },
              /^the schema has no part `row`$/,
              /^known are `entities`/,
              '/parts',
            ],
            ['semantic_schema', { from: 'x' }, /^`from` is a whole number/, null, '/from'],
          ];
          for (const [name, args, detail, hint, path] of wrong) {
            const called = await call(client, name, args);
            t.ok(called.isError && sound(called), `${name} ${JSON.stringify(args)}`);
            const { request_id: id, problem, status } = called.content;
            t.match(problem, { code: 'E0511', sqlstate: '22023', status: 400, detail, hint, request_id: id });
            t.equal(status, 400);
            t.equal(called.content['path'], path, 'the argument');
            const example = await call(client, name, called.content['example'] as Record<string, unknown>);
            t.notOk(example.isError, `an example that runs: ${JSON.stringify(called.content['example'])}`);
            t.match(await rest.trail(String(id)), [
              { subject: 'user:ann', decision: 'error', code: 'E0511' },
            ]);
          }
          await t.rejects(client.callTool({ name: 'metric_lookup', arguments: {} }), 'there is no such tool');
        },
      );

      await t.test('a number that a reader of JSON rounds is refused, with its place', async (t) => {
        const headers = {
          authorization: `Bearer ${await rest.test.token('user:ann')}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        };
        const message = (args: string): string =>
          `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"semantic_query","arguments":${args}}}`;
        const asked = async (args: string) => {
          const reply = await rest.send('/mcp', { method: 'POST', headers, body: message(args) });
          const [, data = reply.text] = /^data: (.*)$/m.exec(reply.text) ?? [];
          return JSON.parse(data).result.structuredContent;
        };
        const osql = 'select $1::int8 as id';
        const pointer = /^the number at `\/parameters\/0` has more digits/;
        for (const number of ['9007199254740993', '0.12345678901234567891', '1e400']) {
          const refused = await asked(`{"osql":"${osql}","parameters":[${number}]}`);
          t.match(refused, {
            status: 400,
            problem: { code: 'E0511', detail: pointer, hint: 'send it as a string' },
          });
          t.same(refused.problem.position, { offset: 46, line: 1, column: 47 }, 'in the arguments');
        }
        const decimal = message('{"osql":"select $1::numeric as n","parameters":[0.12345678901234567891]}');
        const batch = await rest.send('/mcp', { method: 'POST', headers, body: `[${decimal}]` });
        t.match(
          batch.json(),
          { code: 'E0511', pointer: '/0/params/arguments/parameters/0' },
          'in a batch too',
        );
        t.match(await asked(`{"osql":"${osql}","parameters":["9007199254740993"]}`), {
          rows: [{ id: '9007199254740993' }],
        });
        t.match(await asked(`{"osql":"${osql}","parameters":[9007199254740991]}`), {
          rows: [{ id: '9007199254740991' }],
        });
      });

      await t.test('calls side by side, each as its own caller', async (t) => {
        const subjects = ['user:ann', 'user:ada', 'user:eu', 'user:us'];
        const clients = await Promise.all(subjects.map((s) => connected(rest, s, revision)));
        const osql = 'select id, email from osl.entities.customer order by id';
        const answers = await Promise.all(
          Array.from({ length: 24 }, (_, i) => call(clients[i % 4] ?? client, 'semantic_query', { osql })),
        );
        for (const [i, { content }] of answers.entries()) {
          const expected = (await rest.ask(subjects[i % 4] ?? '', { osql })).json()['rows'];
          t.strictSame(content['rows'], expected, `${subjects[i % 4]}`);
        }
        await Promise.all(clients.map((c) => c.close()));
      });
    });
  }

  const send = (headers: Record<string, string>, method = 'POST') =>
    rest.send('/mcp', {
      method,
      from: freshAddress(),
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        ...headers,
      },
      ...(method === 'POST' ? { body: { jsonrpc: '2.0', id: 1, method: 'tools/list' } } : {}),
    });

  await t.test('who has no good token is told where tokens come from', async (t) => {
    for (const [authorization, code, challenge] of [
      [null, 'E2102', 'Bearer resource_metadata='],
      ['Bearer x', 'E3001', 'Bearer error="invalid_token", resource_metadata='],
    ] as const) {
      const reply = await send(authorization === null ? {} : { authorization });
      t.match(reply.json(), { status: 401, code });
      t.equal(reply.status, 401);
      const metadata = `http://127.0.0.1:${rest.port}/.well-known/oauth-protected-resource/mcp`;
      t.equal(reply.headers['www-authenticate'], `${challenge}"${metadata}"`);
      t.match(await rest.trail(reply.requestId), [{ action: 'mcp', subject: null, decision: 'deny', code }]);
      const [record] = await rest.test.records(reply.requestId);
      t.equal(record?.surface, 'mcp');
    }
    const about = await rest.send('/.well-known/oauth-protected-resource/mcp');
    t.match(about.json(), {
      resource: `http://127.0.0.1:${rest.port}/mcp`,
      bearer_methods_supported: ['header'],
    });
    for (const revision of REVISIONS) {
      const client = newClient(revision);
      await t.rejects(client.connect(transportTo(rest, { authorization: 'Bearer wrong' })), revision);
    }
  });

  await t.test('pages of other origins, and other names for this machine, are refused', async (t) => {
    const authorization = `Bearer ${await rest.test.token('user:ann')}`;
    const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
    const tried: readonly (readonly [Record<string, string>, boolean])[] = [
      [{}, true],
      [{ origin: 'http://localhost:3000' }, true],
      [{ origin: 'https://app.example' }, true],
      [{ host: 'osl.example' }, true],
      [{ host: '192.0.2.7:8642' }, true],
      [{ origin: 'https://evil.example' }, false],
      [{ origin: 'http://app.example' }, false],
      [{ origin: 'null' }, false],
      [{ origin: 'https://localhost.evil.example' }, false],
      [{ host: 'evil.example' }, false],
      [{ host: 'localhost.evil.example:8642' }, false],
      [{ host: 'evil.example', origin: 'http://evil.example' }, false],
    ];
    for (const [headers, served] of tried) {
      const reply = await rest.send('/mcp', {
        method: 'POST',
        from: freshAddress(),
        headers: {
          authorization,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          ...headers,
        },
        body: ping,
      });
      const name = JSON.stringify(headers);
      if (served) t.equal(reply.status, 200, name);
      else {
        t.match(reply.json(), { status: 403, code: 'E4030' }, name);
        t.match(await rest.trail(reply.requestId), [{ action: 'mcp', decision: 'deny', code: 'E4030' }]);
      }
    }
  });

  await t.test('there are no sessions to open or to end', async (t) => {
    const authorization = `Bearer ${await rest.test.token('user:ann')}`;
    for (const method of ['GET', 'DELETE']) {
      const reply = await send({ authorization }, method);
      t.match(reply.json(), { status: 405, code: 'E4050' });
      t.equal(reply.headers['allow'], 'POST');
    }
    const faulty = await rest.send('/mcp', {
      method: 'POST',
      headers: {
        authorization,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: '{',
    });
    t.equal(faulty.status, 400);
  });

  t.match(await rest.test.verdict(), { integrity: 'intact', openDecisions: 0 });
});

function without(envelope: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { request_id: _, masked, ...others } = envelope;
  return others;
}

test('how many rows there are is told only where all were counted', async (t) => {
  const caps = { rows: 30, bytes: 1_000_000, evidence: 1_000, timeoutMs: 10_000 };
  const capped = await startRest({ mcp: { maxBytes: 2_000 }, settings: { caps } });
  t.teardown(() => capped.close());
  const client = await connected(capped, 'user:ann', 'auto');
  t.teardown(() => client.close());
  const { content } = await call(client, 'semantic_query', {
    osql: 'select * from osl.entities.order order by id',
  });
  t.match(content, { truncated: true, hint: /of more than 30 rows fit/ });
  t.notOk('available_rows' in content);
});
