import { EVALUATION_FAULTS, SCALAR_TYPES, typeRow } from 'osl-compiler';
import t from 'tap';
import { sql } from '../../../src/base/sql.js';
import { proveAtOnce } from '../../proof/lanes/thrice.js';
import { postQuery, startFrontends, WireClient } from '../../support/frontends.js';
import { startTestService } from '../../support/service.js';
import { call, connected } from '../../surfaces/mcp/support.js';
import { WRONG_VALUES } from './values.js';

t.setTimeout(600_000);

const CALLER = { subject: 'user:ann', aclRoles: ['analyst'] };
const service = await startTestService();
const frontends = await startFrontends(service.open, { fast: true });
const token = await frontends.token(CALLER);
const wire = await WireClient.login(frontends.pgPort, CALLER.subject, token);
const agent = await connected({ port: frontends.httpPort, test: service }, CALLER.subject, 'auto');

t.teardown(async () => {
  await agent.close();
  wire.end();
  await frontends.stop();
  await service.close();
});

const ENTITIES = { customer: 'customer', order: '"order"' };
const TABLES = { customer: 'shop.customers', order: 'shop.orders' };

/** The text for one world, and its place in characters from 1. */
function textOf(marked: string, names: typeof ENTITIES): { readonly text: string; readonly place: number } {
  const named = marked.replaceAll('{customer}', names.customer).replaceAll('{order}', names.order);
  return { text: named.replace('‸', ''), place: named.indexOf('‸') + 1 };
}

const ask = (body: unknown, text = '') =>
  postQuery(frontends.httpPort, body, { authorization: `Bearer ${token}` }, text);

t.test(
  'a wrong value is the mistake of its caller: 400, a code, its SQLSTATE, its place and a hint',
  async (t) => {
    for (const wrong of WRONG_VALUES) {
      const { code, sqlstate, message, parameters = [] } = wrong;
      const given = parameters.length > 0 ? { parameters } : {};
      const told = { code, sqlstate, message };
      for (const [kind, names] of [
        ['osql', ENTITIES],
        ['sql', TABLES],
      ] as const) {
        const { text, place } = textOf(wrong.text, names);
        const reply = await ask({ [kind]: text, ...given }, text);
        t.match(
          reply,
          { status: 400, outcome: { ...told, position: place, hint: String } },
          `${kind}: ${text}`,
        );
      }
      const { text, place } = textOf(wrong.text, ENTITIES);
      const called = await call(agent, 'semantic_query', { osql: text, ...given });
      const problem = {
        status: 400,
        code,
        sqlstate,
        detail: message,
        hint: String,
        position: { offset: place - 1 },
      };
      t.match(called, { isError: true, content: { status: 400, problem } }, `mcp: ${text}`);
      const values = parameters.map(String);
      t.match(
        (await wire.extended(text, { values })).outcome,
        { ...told, position: place, hint: String },
        `extended: ${text}`,
      );
      if (parameters.length > 0) continue;
      t.match(
        (await wire.simple(text)).outcome,
        { ...told, position: place, hint: String },
        `simple: ${text}`,
      );
    }
  },
);

t.test('the value itself is never told, and the log has an error of the caller', async (t) => {
  const reply = await ask({ osql: 'select $1::int4', parameters: ['geheim'] });
  t.notMatch(reply.raw.toString(), 'geheim');
  const records = await service.records(reply.requestId ?? '');
  t.match(records, [{ decision: 'allow' }, { outcome: 'error', code: 'E0511' }]);
});

t.test('bytes that are no value of their type', async (t) => {
  for (const [text, bytes, oid] of [
    ['select $1::int4', [1, 2], 23],
    ['select $1::numeric', [1, 2, 3], 1700],
  ] as const) {
    const reply = await wire.extended(text, { values: [Buffer.from(bytes)], formats: [1] }, [oid]);
    t.match(reply.outcome, { code: 'E0511', sqlstate: '22P03', position: 8 }, text);
  }
});

// The embedded engine has no sessions that callers share, and so no fast lane.
const fast =
  service.engine.governed.status.kind === 'postgres' ? {} : { skip: 'no native Postgres for this run' };
t.test('the fast lane says the same, with the place in the text at hand', fast, async (t) => {
  const asked = (ten: string, four: string) =>
    `select name from customer where id = 2 and ${ten} / (id + id - ${four}) > 0`;
  const slow = await wire.simple(asked('10', '4'));
  t.match(slow.outcome, { sqlstate: '22012', position: 47 });
  proveAtOnce();
  while (frontends.fastQuestions() === 0) await wire.simple(asked('10', '5'));
  const before = frontends.fastQuestions();
  t.same((await wire.simple(asked('10', '4'))).outcome, slow.outcome);
  t.same((await wire.simple(asked('1000', '4'))).outcome, { ...slow.outcome, position: 49 });
  t.equal(frontends.fastQuestions(), before + 2, 'both went fast');
});

t.test('a value in a metrics body', async (t) => {
  const bodies: readonly (readonly [body: object, code: string, sqlstate: string])[] = [
    [{ where: ["{{ Dimension('order__quantity') }} = 'abc'"] }, 'E0511', '22P02'],
    [{ where: ["{{ TimeDimension('order__placed_at','day') }} >= '2024-02-30'"] }, 'E0511', '22008'],
    [{ where: ["{{ TimeDimension('order__placed_at','day') }} >= 'Feb 30 2024'"] }, 'E0511', '22008'],
    [{ where: ["1.0 / ({{ Dimension('order__quantity') }} - 1) > 1"] }, 'E0529', '22012'],
    [{ time_constraint: { start: '2024-02-30' } }, 'E0511', '22023'],
  ];
  for (const [body, code, sqlstate] of bodies) {
    const asked = { metrics: ['revenue'], ...body };
    t.match(await ask(asked), { status: 400, outcome: { code, sqlstate } }, JSON.stringify(body));
    const called = await call(agent, 'semantic_query', asked);
    t.match(called, { isError: true, content: { status: 400, problem: { code } } }, JSON.stringify(body));
  }
});

t.test(
  'each literal that a hint shows is one, and each expression that one shows can be computed',
  async (t) => {
    for (const type of SCALAR_TYPES) {
      const { example } = typeRow(type);
      const reply = await ask({ osql: `select '${example}'::${type} as v` });
      t.equal(reply.outcome.kind, 'rows', `${type} '${example}'`);
      const wrong = await ask({ osql: `select $1::${type}[] as v`, parameters: ['{{'] });
      const hint = wrong.outcome.kind === 'refused' ? wrong.outcome.hint : null;
      const shown = /^write an array as '(.*)'$/.exec(hint ?? '')?.[1] ?? 'none';
      const items = await ask({ osql: `select $1::${type}[] as v`, parameters: [shown] });
      t.equal(items.outcome.kind, 'rows', `${type}[] '${shown}'`);
    }
    for (const [sqlstate, [, hint]] of EVALUATION_FAULTS) {
      for (const [, code = ''] of (hint ?? '').matchAll(/`([^`]*\bx\b[^`]*)`/g)) {
        const reply = await ask({ osql: `select ${code} from (values (1.5)) as v(x)` });
        t.equal(reply.outcome.kind, 'rows', `${sqlstate}: ${code}`);
      }
    }
    const zones = ["'Europe/Berlin'", "'UTC'", "interval '2 hours'"];
    for (const zone of zones)
      t.equal((await ask({ osql: `select now() at time zone ${zone}` })).outcome.kind, 'rows', zone);
  },
);

t.test(
  'what the compiler refuses of dates and times the database would refuse, by the same SQLSTATE',
  async (t) => {
    const { engine } = service;
    await engine.system.script(sql`
    CREATE FUNCTION shop.fault_of(value text, type text) RETURNS text LANGUAGE plpgsql AS $$
    BEGIN EXECUTE format('SELECT %L::%s', value, type); RETURN NULL;
    EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$`);
    const years = ['0000', '0001', '1582', '1900', '2000', '2023', '2024', '12024'];
    const days = years.flatMap((y) =>
      ['0', '00', '1', '02', '12', '13'].flatMap((m) =>
        ['00', '1', '28', '29', '30', '31', '32'].map((d) => `${y}-${m}-${d}`),
      ),
    );
    const times = [
      '0:00',
      '23:59:59',
      '23:59:60',
      '24:00',
      '24:00:01',
      '25:00',
      '12:60',
      '12:30:61',
      '12:30:59.999999999',
      '1:2',
      '12:30 PM',
      '13:30 PM',
    ];
    const moments = ['2024-02-29', '2024-02-30', '2023-02-29'].flatMap((d) =>
      times.flatMap((c) => [`${d} ${c}`, `${d}T${c}`, `${d} ${c} BC`]),
    );
    const tried = [
      ['date', days],
      ['time', times],
      ['timestamp', [...days, ...moments]],
      ['timestamptz', [...days, ...moments]],
    ] as const;
    for (const [type, texts] of tried) {
      const refused: string[] = [];
      for (const text of texts) {
        const planned = await ask({ osql: `select '${text}'::${type}`, explain: true });
        if (planned.outcome.kind === 'refused') refused.push(text);
      }
      t.ok(
        refused.length > 2 && refused.length < texts.length,
        `${type}: ${refused.length} of ${texts.length}`,
      );
      const rows = await engine.system.query(
        sql`SELECT value, shop.fault_of(value, $2) AS fault FROM unnest($1::text[]) AS value`,
        [refused, type],
      );
      const others = rows.filter((row) => row['fault'] !== '22008');
      t.same(others, [], type);
    }
  },
);
