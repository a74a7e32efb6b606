import { typeOfOid } from 'osl-compiler';
import t from 'tap';
import {
  type Asker,
  type Caller,
  type Outcome,
  postQuery,
  type ReceivedStatement,
  SURFACES,
  type SurfaceName,
  startFrontends,
  stringAt,
} from '../../support/frontends.js';
import { AUDITOR, BUYER, CLERK, HELPED, LOST, MIXED, openShop } from '../attacks/shop.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(180_000);

/** Same text, same caller: the same decision, SQL, columns, rows and audit records, whoever is asked. */
const TEXTS: readonly string[] = [
  // answered
  'select 1 as one',
  "select 'text' as t, 1.5 as n, true as b, null as nothing",
  'select * from customer order by id',
  'select * from osl.entities.customer as c where c.id = 2',
  'select id, ssn, salary, phone, born from entities.customer order by id',
  'select name from customer where amt between 15 and 30 order by amt desc',
  "select upper(name) as shout, length(ssn) from customer where name like '%o%' order by 1",
  'select region, count(*), sum(amt), avg(score) from customer group by region having count(*) > 0 order by region',
  'select count(*), count(distinct ssn) as kinds, min(salary), max(email) from customer',
  'select id, rank() over (order by amt desc), sum(amt) over () from customer order by id',
  'select c.name, p.total from customer c join purchase p on p.customer_id = c.id order by p.id',
  'select p.id, c.name from purchase p left join customer c on c.id = p.customer_id order by p.id',
  'select c.id, l.stars from customer c join likes l on l.customer_id = c.id order by c.id, l.stars',
  'with t as (select id, amt from customer where amt > 5) select count(*), sum(amt) from t',
  "select x.id from (select id, name from customer) x where x.name > 'B' order by x.id limit 2 offset 0",
  'select id from customer union select id from purchase order by 1',
  'select id from customer except select customer_id from purchase order by 1',
  'select id from customer where id in (select customer_id from purchase) order by id',
  'select id from customer c where not exists (select 1 from purchase p where p.customer_id = c.id) order by id',
  "select id, case when amt > 15 then 'big' else 'small' end as size, joined from customer order by id",
  'select measure(revenue), measure(customers) from purchase',
  'select measure(revenue) as r, region from purchase group by region order by region',
  'select array_agg(id order by id) as ids, to_jsonb(max(name)) as j from customer',
  'select distinct region, born from customer order by 1, 2',
  "select id from customer where joined >= timestamptz '2024-02-15 00:00:00Z' and id in (1, 2, 3) order by id",
  'select id from customer where false',
  "values (1, 'a'), (2, 'b')",
  // refused
  '',
  '-- nothing',
  'select',
  'selec id from customer',
  'select id from customer where (',
  'select id, from customer',
  'select nothing from customer',
  'select c.nothing from customer c',
  'select id from nowhere',
  'select note from customer',
  'select card from customer',
  'select content from vault',
  'select measure(nothing) from customer',
  'select pg_sleep(1)',
  "select id from customer where name > 1 + 'x'",
  'select id + name from customer',
  'select sum(amt), id from customer',
  'select id from customer natural join purchase',
  'select c.id from customer c join purchase p on c.name = p.memo',
  'select c.id from customer c join purchase p on c.ssn = p.customer_ssn',
  'delete from customer',
  'select id from customer; select 1',
  'select 1/(id - id) from customer',
  'select ssn::int4 from customer',
  'select \u00e9\u00e9, "\u{1f600}", nothing from customer',
];

const CALLERS: readonly Caller[] = [
  CLERK,
  AUDITOR,
  MIXED,
  BUYER,
  LOST,
  HELPED,
  { subject: 'user:nobody', aclRoles: ['clerk'] },
];

const EMPTY = new Set(['', '-- nothing']);

/** Where the protocol itself has something else in mind; tests below say what. */
function isOwnWay(surface: SurfaceName, text: string): boolean {
  if (EMPTY.has(text)) return surface !== 'REST';
  return surface === 'simple wire' && text.includes(';');
}

const shop = await openShop();
const fronts = await startFrontends(shop.open);
t.teardown(async () => {
  await fronts.stop();
  await shop.close();
});

interface Observed {
  readonly outcome: Outcome;
  readonly types: readonly string[];
  readonly statements: readonly ReceivedStatement[];
  readonly records: readonly object[];
}

async function observe(asker: Asker, surface: SurfaceName, text: string): Promise<Observed> {
  fronts.takeAudit();
  fronts.takeStatements();
  const { outcome, types } = await asker.ask(text);
  return {
    outcome,
    types: surface === 'REST' ? types : types.map((oid) => typeOfOid(Number(oid)) ?? oid),
    statements: fronts.takeStatements(),
    records: fronts.takeAudit().map((entry) => {
      const { request_id, surface: where, ts, duration_us, action, ...same } = entry;
      // The wire refuses at Parse what REST refuses when asked.
      return { ...same, action: action === 'prepare' ? 'query' : action };
    }),
  };
}

/** Types of an answer that failed are known to some surfaces only. */
function comparable({ types, ...rest }: Observed): object {
  return rest.outcome.kind === 'refused' ? rest : { types, ...rest };
}

for (const caller of CALLERS) {
  const name = [...(caller.chain ?? [caller.subject])].join(' → ');
  t.test(name, async (t) => {
    const askers = new Map<SurfaceName, Asker>();
    for (const surface of SURFACES) askers.set(surface, await fronts.asker(surface, caller));
    const answered = { rows: 0, refused: 0 };
    for (const text of TEXTS) {
      const seen: Observed[] = [];
      for (const [surface, asker] of askers) {
        if (!isOwnWay(surface, text)) seen.push(await observe(asker, surface, text));
      }
      const [first, ...others] = seen;
      if (first === undefined) throw new Error('there is a first surface');
      for (const other of others) t.strictSame(comparable(other), comparable(first), text);
      t.ok(first.records.length > 0, 'recorded');
      answered[first.outcome.kind] += 1;
    }
    t.ok(answered.refused > 15, `${answered.refused} texts are refused`);
    if (caller.subject !== 'user:nobody') t.ok(answered.rows > 2, `${answered.rows} texts are answered`);
    for (const asker of askers.values()) asker.end();
  });
}

t.test('names that occur twice are told apart in JSON only', async (t) => {
  const text = 'select id, id, id as id_2 from customer where id = 1';
  const wire = await (await fronts.asker('simple wire', CLERK)).ask(text);
  const rest = await (await fronts.asker('REST', CLERK)).ask(text);
  t.match(wire.outcome, { columns: ['id', 'id', 'id_2'], rows: [['1', '1', '1']] });
  t.match(rest.outcome, { columns: ['id', 'id_3', 'id_2'], rows: [['1', '1', '1']] });
});

t.test('a simple query may hold several statements, each decided by itself', async (t) => {
  fronts.takeAudit();
  const wire = await (await fronts.asker('simple wire', CLERK)).ask('select 1 as a; select 2 as a');
  t.match(wire.outcome, { rows: [['1'], ['2']] });
  t.equal(fronts.takeAudit().filter((e) => e.kind === 'decision' && e.action === 'query').length, 2);
});

t.test('an empty text is no question to the wire, and a fault to REST', async (t) => {
  for (const text of EMPTY) {
    const wire = await (await fronts.asker('simple wire', CLERK)).ask(text);
    t.match(wire.outcome, { kind: 'rows', rows: [] }, 'EmptyQueryResponse, as in Postgres');
    const rest = await (await fronts.asker('REST', CLERK)).ask(text);
    t.match(rest.outcome, { code: 'E0511' });
  }
});

t.test('what explain shows to an admin is what the wire runs', async (t) => {
  const admin: Caller = { subject: 'user:admin', aclRoles: ['clerk'], roles: ['TENANT_ADMIN'] };
  const headers = { authorization: `Bearer ${await fronts.token(admin)}` };
  const wire = await fronts.asker('simple wire', admin);
  let compared = 0;
  for (const text of TEXTS.filter((x) => !isOwnWay('simple wire', x))) {
    const { json, outcome } = await postQuery(fronts.httpPort, { osql: text, explain: true }, headers, text);
    fronts.takeStatements();
    const ran = await wire.ask(text);
    const [statement] = fronts.takeStatements();
    if (outcome.kind === 'refused') t.strictSame(outcome, ran.outcome, text);
    else {
      t.equal(stringAt(json, 'sql'), statement?.sql, text);
      compared += 1;
    }
  }
  t.ok(compared > 20);
  wire.end();
});

t.test('another caller is told apart', async (t) => {
  const text = 'select id, ssn from customer order by id';
  const [clerk, auditor] = [await fronts.asker('REST', CLERK), await fronts.asker('simple wire', AUDITOR)];
  const [a, b] = [await observe(clerk, 'REST', text), await observe(auditor, 'simple wire', text)];
  t.notSame(b.outcome, a.outcome);
  t.notSame(b.statements, a.statements);
  t.notSame(b.records, a.records);
  auditor.end();
});
