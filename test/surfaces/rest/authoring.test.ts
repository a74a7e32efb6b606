import t, { test } from 'tap';
import { DEFAULT_LIMITS } from '../../../policy/index.js';
import { sql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { systemReads } from '../../../src/service/system-reads.js';
import { fc } from '../../support/fast-check.js';
import { inOneMoment } from '../../support/moment.js';
import { startNativePostgres } from '../../support/native-postgres.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import type { TokenClaims } from '../../support/service.js';
import { type Reply, startRest } from './fixture.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const rest = await startRest();
const ADMIN: TokenClaims = { roles: ['TENANT_ADMIN'] };

async function send(
  method: 'GET' | 'POST',
  path: string,
  body: unknown = undefined,
  claims: TokenClaims = ADMIN,
  subject = 'user:root',
): Promise<Reply> {
  const authorization = `Bearer ${await rest.test.token(subject, claims)}`;
  const headers = { authorization, ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
  return rest.send(path, { method, headers, body });
}

const CALLS = [
  ['GET', '/osl/candidates', undefined, 'candidates'],
  ['POST', '/osl/suggest', { table: 'db.shop.orders' }, 'suggest'],
  ['POST', '/osl/validate', { fragment: { metrics: {} } }, 'validate'],
] as const;

test('authoring', async (t) => {
  t.teardown(() => rest.close());
  await rest.test.engine.system.script(
    sql`CREATE TABLE shop.notes (id int PRIMARY KEY, order_id bigint REFERENCES shop.orders, email text NOT NULL)`,
  );

  await t.test('is for admins, whose whole chain is, and every call is recorded', async (t) => {
    for (const [method, path, body, action] of CALLS) {
      const served = await send(method, path, body);
      t.equal(served.status, 200, `${path} ${served.text.slice(0, 200)}`);
      t.equal(served.headers['cache-control'], 'no-store');
      t.match(await rest.trail(served.requestId), [
        { kind: 'decision', action, subject: 'user:root', decision: 'allow' },
        { kind: 'outcome', action, outcome: 'ok' },
      ]);
      const refusals = [
        ['a role that is not claimed', await send(method, path, body, {})],
        ['a role above the ceiling', await send(method, path, body, ADMIN, 'user:ann')],
        [
          'an agent without the role',
          await send(method, path, body, { ...ADMIN, chain: ['user:root', 'agent:bot'] }, 'agent:bot'),
        ],
      ] as const;
      for (const [why, reply] of refusals) {
        t.match(reply.json(), { status: 403, code: 'E2101' }, `${path}: ${why}`);
        t.notOk(/notes|orders|shop/.test(reply.text), 'nothing of the database is told');
        t.match(await rest.trail(reply.requestId), [{ action, decision: 'deny', code: 'E2101' }]);
      }
      const anonymous = await rest.send(path, {
        method,
        body,
        headers: { 'content-type': 'application/json' },
      });
      t.match(anonymous.json(), { status: 403, code: 'E2102' });
    }
  });

  await t.test('candidates are what nothing rests on', async (t) => {
    const { candidates, unread, truncated } = (await send('GET', '/osl/candidates')).json();
    t.match({ unread, truncated }, { unread: [], truncated: false });
    t.match(candidates, [
      {
        id: 'db.shop.notes',
        proposal: 'entity',
        name: 'notes',
        key: ['id'],
        columns: [{ name: 'id', type: 'int4' }, { name: 'order_id' }, { name: 'email', nullable: false }],
        foreign_keys: [{ columns: ['order_id'], references: { table: 'orders', entity: 'order' } }],
      },
    ]);
    t.equal((candidates as unknown[]).length, 1);
  });

  await t.test('a draft compiles, and labels nothing', async (t) => {
    const reply = (await send('POST', '/osl/suggest', { candidate: 'db.shop.notes' })).json();
    t.match(reply, {
      fragment: {
        json: {
          connectors: {
            db: { tables: { 'shop.notes': { columns: { email: { type: 'text', nullable: false } } } } },
          },
          entities: { notes: { source: 'db.shop.notes', primary_key: ['id'] } },
          relationships: { notes_order: { from: 'notes.order_id', to: 'order.id', kind: 'many_to_one' } },
        },
        yaml: /^connectors:\n {2}db:\n/,
      },
      diagnostics: [],
      versions: { manifest: rest.test.service.model().manifest.version },
    });
    t.notOk(/pii: true\n|sensitivity:\s/.test((reply['fragment'] as { yaml: string }).yaml));
    t.match(reply['notes'], [/no column has a sensitivity label/]);
    t.notOk(rest.test.service.model().manifest.entities.has('notes'), 'nothing is stored');
  });

  await t.test('a term means the best of what the graph has', async (t) => {
    const reply = (await send('POST', '/osl/suggest', { term: 'customers' })).json();
    t.match(reply, {
      fragment: { json: { lexicon: { customers: { refers_to: 'customer' } } } },
      diagnostics: [],
      notes: [/^customer: /],
    });
  });

  await t.test('what cannot be drafted is told', async (t) => {
    const bodies = [
      [{ candidate: 'db.shop.orders' }, 'E1001'], // adopted
      [{ table: 'db.shop.nothing' }, 'E1001'],
      [{ table: 'other.shop.orders' }, 'E1001'],
      [{ term: 'zyzzyva' }, 'E1001'],
      [{}, 'E0511'],
      [{ table: 'db.shop.orders', term: 'order' }, 'E0511'],
      [{ table: 7 }, 'E0511'],
      [{ term: 'a\u0000b' }, 'E0511'],
      [{ colour: 'red' }, 'E0511'],
      [{ term: 'x'.repeat(201) }, 'E0511'],
      ['[]', 'E0511'],
    ] as const;
    for (const [body, code] of bodies) {
      const reply = await send('POST', '/osl/suggest', body);
      t.equal(reply.json()['code'], code, `${JSON.stringify(body)}: ${reply.text}`);
      t.match(await rest.trail(reply.requestId), [{ kind: 'decision', action: 'suggest' }]);
    }
    for (const body of [{ fragment: 1 }, { manifest: [] }, { fragment: 'a: 1', manifest: 'a: 1' }, {}]) {
      t.match((await send('POST', '/osl/validate', body)).json(), { code: 'E0511' }, JSON.stringify(body));
    }
    t.match((await send('GET', '/osl/candidates?all=true')).json(), { code: 'E0511' });
    t.match((await send('POST', '/osl/suggest', '{"term":')).json(), { code: 'E0511' });
  });

  const judged = async (body: unknown): Promise<Record<string, unknown>> =>
    (await send('POST', '/osl/validate', body)).json();

  await t.test('what would not compile is told with its place', async (t) => {
    t.match(await judged({ fragment: 'entities:\n  order: { source: db.shop.nowhere }\n' }), {
      ok: false,
      diff: null,
      diagnostics: [
        {
          code: /^M1003$/,
          severity: 'error',
          document: 'manifest',
          path: '/entities/order',
          range: { start: { line: 2 } },
        },
      ],
    });
    const metric = { entity: 'order', expression: 'sum(nothing)' };
    const reply = await judged({ fragment: { metrics: { wrong: metric } } });
    t.match(reply, { ok: false, diagnostics: [{ path: '/metrics/wrong/expression', range: null }] });
    t.match(await judged({ fragment: 'a: [' }), { ok: false, diagnostics: [{ code: 'M0003' }] });
    t.match(await judged({ manifest: '[]' }), { ok: false, diagnostics: [{ code: 'M1001' }] });
    t.match(await judged({ fragment: '[]' }), { ok: false, diagnostics: [{ code: 'M1001' }] });
  });

  await t.test('a manifest without what the policy names could not serve', async (t) => {
    const { document } = rest.test.service.model().manifest;
    const { sample: _, ...entities } = document.entities;
    t.match(await judged({ manifest: { ...document, entities } }), {
      ok: false,
      diagnostics: [{ code: 'P0102', document: 'policy', path: '/roles/analyst/grants/4/on', range: null }],
    });
  });

  await t.test('what is served changes nothing for anybody', async (t) => {
    const { document, version } = rest.test.service.model().manifest;
    const same = {
      ok: true,
      diagnostics: [],
      diff: { version, changes: [], access: [], needs_restart: false },
    };
    const { request_id: _, versions: __, ...whole } = await judged({ manifest: document });
    t.strictSame(whole, same);
    const {
      request_id: ___,
      versions: ____,
      ...part
    } = await judged({ fragment: { entities: document.entities } });
    t.strictSame(part, same);
  });

  await t.test('who gains, who loses, and who sees something else', async (t) => {
    const { document } = rest.test.service.model().manifest;
    const tables = { ...document.connectors['db']?.tables };
    const columns = { ...tables['shop.customers']?.columns };
    const relabelled = {
      ...columns,
      email: { type: 'text' },
      name: { type: 'text', sensitivity: 'birth', nullable: false },
    };
    const fragment = {
      connectors: { db: { tables: { 'shop.customers': { columns: relabelled } } } },
      entities: {
        product: { ...document.entities['product'], columns: { id: null, label: { column: 'id' } } },
      },
      metrics: { orders: { entity: 'order', expression: 'count(*)' } },
    };
    const { diff } = (await judged({ fragment })) as { diff: { changes: object[]; access: Role[] } };
    t.match(
      diff.changes.filter((c) => 'kind' in c && c.kind !== 'facet'),
      [
        { change: 'changed', kind: 'column', name: 'customer.name', what: ['sensitivity'] },
        { change: 'changed', kind: 'column', name: 'customer.email', what: ['sensitivity'] },
        { change: 'changed', kind: 'column', name: 'product.label', what: ['column', 'type', 'nullable'] },
        { change: 'added', kind: 'metric', name: 'orders', what: [] },
      ],
    );
    const told = new Map(diff.access.map((r) => [r.role, r.changes.map((c) => `${c.effect} ${c.object}`)]));
    t.strictSame(told.get('regional'), [
      'gains osl.entities.customer.email',
      'loses osl.entities.customer.name',
      'gains osl.metrics.orders',
    ]);
    t.ok(told.get('analyst')?.includes('differs osl.entities.product.label'), 'the same name, of other data');
    t.strictSame(
      told.get('auditor'),
      ['gains osl.metrics.orders'],
      'who unmasks both labels sees no difference',
    );
    t.notOk(told.has('no_addresses'), 'a role without grants gains nothing');
    t.match(
      diff.access.find((r) => r.role === 'regional'),
      { subjects: { count: 3, first: ['user:eu', 'user:us', 'agent:bot'] } },
    );
    const email = diff.access.flatMap((r) => r.changes).find((c) => c.object.endsWith('.email'));
    t.match(email, {
      before: { access: 'masked', reads: 'db.shop.customers.email as redact' },
      after: { access: 'clear', reads: 'db.shop.customers.email' },
    });
  });

  await t.test('judging stores nothing', async (t) => {
    const before = rest.test.service.model().manifest;
    t.equal((await send('POST', '/osl/validate', { fragment: { metrics: {} } })).status, 200);
    t.equal(rest.test.service.model().manifest, before, 'nothing is stored, nothing reloaded');
  });
});

const native = await startNativePostgres();
const skip = native === null && 'no native Postgres is installed here';

test('a connector without system credentials is told of, not passed over', { skip }, async (t) => {
  if (native === null) throw new Error('it is skipped then');
  const engine = await openEngine({ kind: 'postgres', url: native.readerUrl, systemUrl: null, poolSize: 1 });
  const blind = await startRest({
    serve: (service) => ({
      ...sealing(service, { engines: new Map([['db', engine.governed]]) }),
      readCatalog: systemReads(new Map([['db', engine]])).readCatalog,
    }),
  });
  t.teardown(async () => {
    await blind.close();
    await engine.close();
    await native.stop();
  });
  const authorization = `Bearer ${await blind.test.token('user:root', ADMIN)}`;
  const headers = { authorization, 'content-type': 'application/json' };
  const reason = /^it has no system credentials: \w+_SYSTEM is not set$/;
  const listed = await blind.send('/osl/candidates', { headers });
  t.match(listed.json(), { candidates: [], unread: [{ connector: 'db', reason }], truncated: false });
  const map = await blind.send('/osl/domain-map', { headers });
  t.match(map.json(), { unread: [{ connector: 'db', reason }] }, 'nor is the map silent');
  const body = { table: 'db.shop.orders' };
  const refused = await blind.send('/osl/suggest', { method: 'POST', headers, body });
  t.match(refused.json(), {
    code: 'E1001',
    detail: /^connector `db`: it has no system credentials: \w+_SYSTEM is not set$/,
  });
  t.match(await blind.trail(refused.requestId), [{ decision: 'allow' }, { outcome: 'error', code: 'E1001' }]);
  t.equal(
    blind.test.lines.filter((l) => l.message === 'catalog not read').length,
    3,
    'the operator hears why',
  );
});

interface Role {
  readonly role: string;
  readonly changes: readonly { readonly object: string; readonly effect: string }[];
}

/** A text as its lines and the place of a range in it: what editors and this service count from 1, in UTF-16 units. */
function marked(text: string, range: { start: Place; end: Place }): string | null {
  const lines = text.split('\n');
  const offset = ({ line, column }: Place): number | null => {
    const before = lines.slice(0, line - 1).reduce((sum, l) => sum + l.length + 1, 0);
    return column < 1 || column > (lines[line - 1]?.length ?? -1) + 1 ? null : before + column - 1;
  };
  const [start, end] = [offset(range.start), offset(range.end)];
  return start === null || end === null || end < start ? null : text.slice(start, end);
}

/** No half of a surrogate pair. */
const WHOLE = /^(?:[\ud800-\udbff][\udc00-\udfff]|[^\ud800-\udfff])*$/;

interface Place {
  readonly line: number;
  readonly column: number;
}

interface Labelled {
  readonly pii?: boolean;
  readonly sensitivity?: string;
}

interface Told {
  readonly path: string;
  readonly range: { start: Place; end: Place } | null;
}

test('ranges of diagnostics point into the text that was sent, or are null', async (t) => {
  const own = await startRest();
  t.teardown(() => own.close());
  const headers = {
    authorization: `Bearer ${await own.test.token('user:root', ADMIN)}`,
    'content-type': 'application/json',
  };
  const judged = async (body: unknown): Promise<readonly Told[]> => {
    const reply = await own.send('/osl/validate', { method: 'POST', headers, body });
    t.equal(reply.status, 200, reply.text);
    return reply.json()['diagnostics'] as readonly Told[]; // as the document has it
  };
  const filler = fc.array(fc.constantFrom('\t', ' ', '\u{1f600}', '\u5b57', 'e\u0301', '"', "'", '#x', 'a'), {
    maxLength: 8,
  });
  const samples = fc.sample(
    fc.record({
      before: filler,
      within: filler,
      eol: fc.constantFrom('\n', '\r\n'),
      style: fc.constantFrom('plain', 'double', 'single', 'flow'),
    }),
    { numRuns: 20, seed: 12 },
  );
  for (const { before, within, eol, style } of samples) {
    const note = JSON.stringify(`x${before.join('')}`);
    const literal = within
      .join('')
      .replaceAll("'", '')
      .replaceAll('"', '')
      .replaceAll('#', '')
      .replaceAll('\t', ' ');
    const expression = `sum(case when '${literal}' = note then nothing end)`;
    const quoted = {
      plain: expression,
      double: JSON.stringify(expression),
      single: `'${expression.replaceAll("'", "''")}'`,
      flow: JSON.stringify(expression),
    }[style];
    const lines =
      style === 'flow'
        ? [
            '{',
            `\t"metrics": { "wrong": { "description": ${note},`,
            `\t\t"entity": "order", "expression": ${quoted} } } }`,
          ]
        : [
            'metrics:',
            '  wrong:',
            `    description: ${note}`,
            '    entity: order',
            `    expression: ${quoted}`,
          ];
    const text = lines.join(eol);
    const [first, ...more] = await judged({ fragment: text });
    t.same([first?.path, more], ['/metrics/wrong/expression', []], text);
    t.equal(first?.range && marked(text, first.range), quoted, JSON.stringify(text));
    const asJson = { metrics: { wrong: { description: JSON.parse(note), entity: 'order', expression } } };
    t.match(await judged({ fragment: asJson }), [{ path: '/metrics/wrong/expression', range: null }]);
  }
  const rough = fc.sample(
    fc.array(
      fc.constantFrom(
        'metrics:',
        ' a:',
        ' b: [',
        '\t',
        '\r\n',
        '\n',
        '\u{1f600}',
        '"',
        "'",
        '- ',
        '|',
        '&x',
        '*y',
        ': ',
        '{',
        '}',
      ),
      {
        maxLength: 12,
      },
    ),
    { numRuns: 60, seed: 12 },
  );
  for (const parts of rough) {
    const text = parts.join('');
    for (const { range } of await judged({ fragment: text })) {
      if (range === null) continue;
      const slice = marked(text, range);
      t.ok(slice !== null && WHOLE.test(slice), `${JSON.stringify(text)} ${JSON.stringify(range)}`);
    }
  }
  const breaking = 'connectors: { db: { tables: { shop.customers: { columns: { id: { type: int4 } } } } } }';
  const broken = await judged({ fragment: breaking });
  t.ok(broken.length > 0);
  for (const { path, range } of broken) t.equal(range, null, `${path} is not in the fragment`);
});

test('a suggestion tells of the labels that its fragment carries, and what it tells, validate accepts', async (t) => {
  const own = await startRest();
  t.teardown(() => own.close());
  const headers = {
    authorization: `Bearer ${await own.test.token('user:root', ADMIN)}`,
    'content-type': 'application/json',
  };
  const reply = await own.send('/osl/suggest', {
    method: 'POST',
    headers,
    body: { table: 'db.shop.customers' },
  });
  const { fragment, notes, diagnostics } = reply.json() as {
    fragment: {
      yaml: string;
      json: {
        connectors: { db: { tables: Record<'shop.customers', { columns: Record<string, Labelled> }> } };
      };
    };
    notes: string[];
    diagnostics: Told[];
  };
  const columns = fragment.json.connectors.db.tables['shop.customers'].columns;
  const carried = Object.entries(columns).flatMap(([name, { pii, sensitivity }]) =>
    pii === true || sensitivity !== undefined ? [`${name} (${sensitivity ?? 'pii'})`] : [],
  );
  t.same(carried, ['email (pii)', 'tax_no (secret)', 'born (birth)']);
  t.ok(notes[0]?.includes(carried.join(', ')), String(notes));
  t.notMatch(notes, [/^no column/]);
  t.ok(
    diagnostics.every((d) => d.range === null),
    'nothing was sent that a range could point into',
  );
  for (const sent of [fragment.yaml, fragment.json]) {
    const judged = await own.send('/osl/validate', { method: 'POST', headers, body: { fragment: sent } });
    t.equal(judged.json()['ok'], diagnostics.length === 0, judged.text);
  }
});

test('authoring and questions have limits of their own', async (t) => {
  const own = await startRest();
  t.teardown(() => own.close());
  const authorization = `Bearer ${await own.test.token('user:root', ADMIN)}`;
  const headers = { authorization, 'content-type': 'application/json' };
  const statuses = async (path: string, bodies: readonly unknown[]): Promise<readonly number[]> => {
    const replies = await inOneMoment(() =>
      Promise.all(bodies.map((body) => own.send(path, { method: 'POST', headers, body }))),
    );
    return replies.map((r) => r.status);
  };
  const limits = { ...DEFAULT_LIMITS, query: 4, authoring: 4, schema: 4 };
  sealedParts(own.test.service).limiter.configure(limits);
  const drafts = Array.from({ length: 12 }, (_, n) => (n % 2 ? '{' : { fragment: { metrics: {} } }));
  const asked = Array.from({ length: 4 }, () => ({ osql: 'select 1 as a' }));
  const flooded = await statuses('/osl/validate', drafts);
  t.ok(flooded.filter((s) => s === 429).length > 0, String(flooded));
  t.same(await statuses('/osl/query', asked), [200, 200, 200, 200], 'a flood of drafts takes no question');
  t.equal((await own.send('/osl/schema', { headers })).status, 200, 'and no reading of the schema');
  sealedParts(own.test.service).limiter.configure({ ...limits, authoring: 100 });
  const questions = await statuses(
    '/osl/query',
    Array.from({ length: 12 }, () => ({ osql: 'select 1 as a' })),
  );
  t.ok(questions.includes(429));
  t.same(await statuses('/osl/validate', drafts.slice(0, 1)), [200], 'nor a flood of questions a draft');
});
