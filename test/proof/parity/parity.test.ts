import { typeOfOid } from 'osl-compiler';
import t from 'tap';
import { differ } from '../../support/differ.js';
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
import { AUDITOR, CLERK, openShop } from '../attacks/shop.js';
import { CALLERS, TEXTS } from './texts.js';

/** Same text, same caller: the same decision, SQL, columns, rows and audit records, whoever is asked. */

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

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

t.test('an empty text is not a question to the wire, and a fault to REST', async (t) => {
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
  differ(t, b.outcome, a.outcome);
  differ(t, b.statements, a.statements);
  differ(t, b.records, a.records);
  auditor.end();
});
