import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { ERRORS, type ErrorName, hintOn } from 'osl-compiler';
import t, { test } from 'tap';
import { createPgFrontend } from '../../src/surfaces/pg/index.js';
import { startFrontends } from '../support/frontends.js';
import { connectPg } from '../support/pg-client.js';
import { sealing } from '../support/sealed-parts.js';
import { startTestService } from '../support/service.js';
import { call, connected } from '../surfaces/mcp/support.js';
import { type RestFixture, startRest } from '../surfaces/rest/fixture.js';

t.setTimeout(600_000); // each test opens a service, and machines differ

/** Way to raise an entry of the catalogue: a question of a subject, any HTTP request, or the test that does it. */
type Raise =
  | { readonly as: string; readonly osql: string; readonly more?: Readonly<Record<string, unknown>> }
  | {
      readonly http: string;
      readonly method?: string;
      readonly type?: string;
      readonly body?: string;
      readonly as?: string;
    }
  | { readonly file: string; readonly shows: string };

const deep = `select ${'abs('.repeat(500)}1${')'.repeat(500)}`;

const RAISES: Readonly<Partial<Record<ErrorName, Raise>>> = {
  syntax: { as: 'user:ann', osql: 'select 1 +' },
  unsupported: { as: 'user:ann', osql: 'explain select id from customer' },
  switchedOff: { file: 'test/surfaces/rest/features.test.ts', shows: 'a set operation is switched off here' },
  readOnly: { as: 'user:ann', osql: 'delete from customer' },
  temporaryTable: { as: 'user:ann', osql: 'create temp table t as select id from customer' },
  noStatement: { as: 'user:ann', osql: '-- later' },
  oneStatement: { as: 'user:ann', osql: 'select 1; select 2' },
  tooLarge: { as: 'user:ann', osql: `select '${'x'.repeat(1_100_000)}'` },
  tooComplex: { as: 'user:ann', osql: `select ${'- '.repeat(11_000)} 1` },
  tooManyColumns: { as: 'user:ann', osql: `select ${'1,'.repeat(1_664)} 1` },
  draftTooCostly: { file: 'test/proof/budget/ways.test.ts', shows: 'it takes more than 500 ms' },
  tooDeep: { as: 'user:ann', osql: deep },
  malformedBody: { as: 'user:ann', osql: 'select 1', more: { colour: 'red' } },
  inexactNumber: {
    http: '/osl/query',
    method: 'POST',
    body: '{"osql":"select $1::int8","parameters":[9007199254740993]}',
    as: 'user:ann',
  },
  typeMismatch: { as: 'user:ann', osql: 'select id from customer where name' },
  unknownFunction: { as: 'user:ann', osql: 'select pg_sleep(1)' },
  unknownOperator: { as: 'user:ann', osql: "select id + '{}'::jsonb from customer" },
  unknownType: { as: 'user:ann', osql: 'select id::regclass from customer' },
  ambiguous: { as: 'user:ann', osql: 'select id from customer c join "order" o on o.customer_id = c.id' },
  duplicateAlias: { as: 'user:ann', osql: 'select 1 from customer c join "order" c on c.id = c.customer_id' },
  grouping: { as: 'user:ann', osql: 'select id, count(*) from customer' },
  windowing: { as: 'user:ann', osql: 'select row_number() from customer' },
  invalidLiteral: { as: 'user:ann', osql: "select id from customer where id = 'x'" },
  unknownLabel: { file: 'test/surfaces/pg/enum-order.test.ts', shows: 'invalid input value for enum' },
  parameterType: {
    as: 'user:ann',
    osql: 'select $1 is null, $3::int4',
    more: { parameters: ['1', '2', '3'] },
  },
  parameterCount: { as: 'user:ann', osql: 'select id from customer where id = $1' },
  unknownRelation: { as: 'user:ann', osql: 'select 1 from customers' },
  unknownColumn: { as: 'user:ann', osql: 'select nme from customer' },
  unknownAlias: { as: 'user:ann', osql: 'select x.id from customer c' },
  unknownMetric: { as: 'user:ann', osql: 'select measure(profit) from "order"' },
  outsideAllowlist: {
    http: '/osl/query',
    method: 'POST',
    body: '{"sql":"table shop.samples"}',
    as: 'user:ann',
  },
  mixedWorlds: {
    http: '/osl/query',
    method: 'POST',
    body: '{"sql":"select measure(revenue) from shop.orders"}',
    as: 'user:ann',
  },
  mixedBody: { as: 'user:ann', osql: 'select 1', more: { sql: 'select 1' } },
  unsealedJoin: { as: 'user:ann', osql: 'select 1 from customer c join "order" o on o.region = c.region' },
  keyNotClear: { file: 'test/proof/golden', shows: 'E0515' },
  emptySql: { http: '/osl/query', method: 'POST', body: '{"sql":""}', as: 'user:ann' },
  unknownFacet: { as: 'user:ann', osql: "select text from retrieve(facet => 'x', query => 'y', top_k => 1)" },
  unknownModel: {
    http: '/osl/sample',
    method: 'POST',
    body: '{"kind":"table","name":"nothing"}',
    as: 'user:ann',
  },
  unresolvable: {
    http: '/osl/query',
    method: 'POST',
    body: '{"metrics":["revenue"],"group_by":["product__label"]}',
    as: 'user:ann',
  },
  unknownDimension: {
    http: '/osl/query',
    method: 'POST',
    body: '{"metrics":["revenue"],"group_by":["order__colour"]}',
    as: 'user:ann',
  },
  invalidCertificate: {
    file: 'test/service/operations/certificates.test.ts',
    shows: 'no rule of the policy is for it alone',
  },
  notServable: { file: 'test/surfaces/rest/objects.test.ts', shows: 'E1002' },
  wrongState: { file: 'test/surfaces/rest/objects.test.ts', shows: 'E4090' },
  baseRequired: { file: 'test/surfaces/rest/objects.test.ts', shows: 'E4280' },
  baseChanged: { file: 'test/surfaces/rest/objects.test.ts', shows: 'E4120' },
  notPublishable: { file: 'test/surfaces/rest/objects.test.ts', shows: 'publishing cannot change' },
  authorsOnly: { http: '/osl/candidates', as: 'user:ann' },
  operatorsOnly: { file: 'test/service/operations/admin.test.ts', shows: 'E2101' },
  noReceipt: { http: '/osl/receipts/00000000-0000-4000-8000-000000000000', as: 'user:ann' },
  shadowRefused: { file: 'test/service/operations/shadow.test.ts', shows: 'E0534' },
  overlap: { file: 'test/ask/overlap.test.ts', shows: 'would show figures of fewer than' },
  overlapSpent: { file: 'test/ask/overlap.test.ts', shows: 'are used up until' },
  overlapShape: { file: 'test/ask/overlap.test.ts', shows: 'cannot be compared with earlier ones' },
  overlapUnknown: { file: 'test/ask/overlap.test.ts', shows: 'cannot be read' },
  noSession: { file: 'test/service/operations/admin.test.ts', shows: 'no session and no running request' },
  invalidToken: { http: '/osl/conformance', as: 'a broken token' },
  missingToken: { http: '/osl/conformance' },
  noAccess: { as: 'user:nil', osql: 'select 1' },
  denied: { file: 'test/surfaces/rest', shows: 'E2101' },
  adminOnly: { http: '/osl/schema', as: 'user:ann' },
  upstreamForAdmins: { file: 'test/surfaces/rest/upstream.test.ts', shows: 'only admins can see the SQL' },
  needsApproval: { file: 'test/proof/attacks/approval.test.ts', shows: 'E0535' },
  notApprover: { file: 'test/proof/attacks/approval.test.ts', shows: 'nobody approves for themselves' },
  noApproval: {
    http: '/osl/approvals/00000000-0000-4000-8000-000000000000',
    method: 'POST',
    body: '{"decision":"decline"}',
    as: 'user:ann',
  },
  approvalsFull: { file: 'test/proof/attacks/approval.test.ts', shows: 'E4290' },
  approvalsUnavailable: { file: 'test/proof/attacks/approval.test.ts', shows: 'E5036' },
  noGlass: { file: 'test/proof/attacks/break-glass.test.ts', shows: 'nobody breaks a glass who has none' },
  glassReason: { file: 'test/proof/attacks/break-glass.test.ts', shows: 'E2104' },
  glassSpent: { file: 'test/proof/attacks/break-glass.test.ts', shows: 'E4290' },
  purposeDenied: { file: 'test/proof/attacks/conditions.test.ts', shows: 'this purpose is not allowed' },
  groupsOnly: { file: 'test/proof/golden', shows: 'E2103' },
  declaredType: { file: 'test/surfaces/pg/declared-types.test.ts', shows: 'is declared as' },
  planChanged: { file: 'test/surfaces/pg/rights.test.ts', shows: 'RevalidateCachedQuery' },
  decodeDenied: { file: 'test/language/forms/decoders.test.ts', shows: 'E2101' },
  rightsChanged: {
    file: 'test/service/operations/gateways.test.ts',
    shows: 'your access changed while the query was running',
  },
  controlUnavailable: { file: 'test/service/operations/gateways.test.ts', shows: 'E5036' },
  auditUnreadable: { file: 'test/service/audit-search.test.ts', shows: 'E5037' },
  limitsUnknown: { file: 'test/service/operations/away.test.ts', shows: 'E5038' },
  noSnapshot: { file: 'test/surfaces/rest/identity.test.ts', shows: 'E2001' },
  budgetSpent: { file: 'test/service/operations/budgets.test.ts', shows: 'a limit of the policy is used up' },
  entitiesSpent: {
    file: 'test/service/operations/entity-limits.test.ts',
    shows: 'would exceed a limit of the policy',
  },
  entitiesUnknown: { file: 'test/service/operations/entity-limits.test.ts', shows: 'E5038' },
  uncountedEntities: { file: 'test/service/operations/entity-limits.test.ts', shows: 'E0536' },
  invalidTask: { file: 'test/service/operations/budgets.test.ts', shows: 'no name of a task' },
  missingTask: { file: 'test/service/operations/budgets.test.ts', shows: 'this request names none' },
  rateLimited: { file: 'test/surfaces/rest/limits.test.ts', shows: 'E4290' },
  noDecoder: { file: 'test/language/forms/content.test.ts', shows: 'E0521' },
  contentUnavailable: {
    as: 'user:ann',
    osql: "select text from retrieve(facet => 'labels', query => 'tea', top_k => 1)",
  },
  modelUnavailable: { file: 'test/language/forms/dense.test.ts', shows: 'the embedding model of facet' },
  rerankerUnavailable: { file: 'test/language/forms/rerank.test.ts', shows: 'is unavailable' },
  rerankBudget: { file: 'test/language/forms/rerank.test.ts', shows: 'E4290' },
  storeClosed: { file: 'test/service/operations/upstream.test.ts', shows: 'E0522' },
  tokenUsed: {
    file: 'test/publishing/wire.test.ts',
    shows: 'this token was already used for a change',
  },
  addressLimited: { file: 'test/surfaces/rest/limits.test.ts', shows: 'without a valid token' },
  execution: { file: 'test/proof/conformance/checks/access.ts', shows: "code: 'E0510'" },
  evaluation: { as: 'user:ann', osql: 'select 1 / (id - id) from customer' },
  unknownZone: { as: 'user:ann', osql: "select now() at time zone 'Nowhere'" },
  negativeCount: { as: 'user:ann', osql: 'select id from customer limit -1' },
  databaseDown: { file: 'test/service/operations/upstream.test.ts', shows: 'E0523' },
  sourceDenied: { file: 'test/service/operations/upstream.test.ts', shows: 'E0524' },
  sourceGone: { file: 'test/service/operations/upstream.test.ts', shows: 'E0525' },
  sourceChanged: { file: 'test/service/operations/upstream.test.ts', shows: 'E0526' },
  cancelled: { file: 'test/engine/both-engines.test.ts', shows: 'cancelled' },
  timedOut: { file: 'test/engine/both-engines.test.ts', shows: 'timedOut' },
  stepCap: { file: 'test/language/forms/traverse.test.ts', shows: 'E0519' },
  formMissing: { file: 'test/service/distributed/server-kinds.test.ts', shows: 'E0528' },
  shardsRefused: { file: 'test/engine/citus-refusals.test.ts', shows: 'E0531' },
  costCap: { file: 'test/surfaces/rest/cost.test.ts', shows: 'E0527' },
  rowTooLarge: { file: 'test/proof/records/cases.ts', shows: 'rowTooLarge' },
  answerMemory: { file: 'test/proof/records/cases.ts', shows: 'answerMemory' },
  rowCap: { file: 'test/docs/raised.test.ts', shows: '54000' },
  auditUnavailable: { file: 'test/surfaces/rest/audit.test.ts', shows: 'E5030' },
  overloaded: { file: 'test/engine/postgres.test.ts', shows: 'overloaded' },
  issuerUnavailable: { file: 'test/service/operations/issuers.test.ts', shows: 'E5033' },
  ownerUnreached: { file: 'test/surfaces/rest/why.test.ts', shows: 'E5034' },
  shuttingDown: { file: 'test/surfaces/rest/streaming.test.ts', shows: 'E5032' },
  internal: { file: 'test/docs/raised.test.ts', shows: 'E5000' },
  notFound: { http: '/osl/nothing', as: 'user:ann' },
  foreignOrigin: { file: 'test/surfaces/mcp/http.test.ts', shows: 'E4030' },
  noArrowValue: { file: 'test/surfaces/rest/arrow/answer.test.ts', shows: 'E4060' },
  methodNotAllowed: { http: '/osl/query', as: 'user:ann' },
  notSubscribable: {
    http: '/osl/subscribe',
    method: 'POST',
    body: '{"osql":"select id from customer limit 1"}',
    as: 'user:ann',
  },
  tooManySubscriptions: { file: 'test/surfaces/rest/subscribe.test.ts', shows: '429 E4290' },
  bodyTooLarge: { http: '/osl/query', method: 'POST', body: ' '.repeat(3_000_000), as: 'user:ann' },
  mediaType: { http: '/osl/query', method: 'POST', type: 'text/plain', body: 'x', as: 'user:ann' },
};

test('every entry of the catalogue is raised by some test', async (t) => {
  const fixture = await startRest();
  t.teardown(() => fixture.close());
  // Every key of the catalogue is an ErrorName; Object.keys only says string.
  for (const name of Object.keys(ERRORS) as ErrorName[]) {
    const raise = RAISES[name];
    if (raise === undefined) {
      t.fail(`${name} has no case here`);
    } else if ('file' in raise) {
      t.ok(mentions(raise.file, raise.shows), `${name} is raised in ${raise.file}`);
    } else {
      const { code, http } = ERRORS[name];
      const reply = await raised(fixture, raise);
      t.match(reply.json(), { code, status: http }, `${name} is ${code}: ${reply.text.slice(0, 160)}`);
    }
  }
});

/** Messages of a session beyond one question: EXPLAIN, several statements or none; `$1` belongs to the protocol. */
const OF_SESSIONS: ReadonlySet<string> = new Set<ErrorName>([
  'unsupported',
  'noStatement',
  'oneStatement',
  'parameterCount',
]);

test('the wire and MCP say of a question what REST says, each in its own form', async (t) => {
  const service = await startTestService();
  const frontends = await startFrontends(service.open);
  const agents = new Map<string, Awaited<ReturnType<typeof connected>>>();
  t.teardown(async () => {
    for (const agent of agents.values()) await agent.close();
    await frontends.stop();
    await service.close();
  });
  let compared = 0;
  for (const [name, raise] of Object.entries(RAISES)) {
    if (!('osql' in raise) || raise.more !== undefined || OF_SESSIONS.has(name)) continue;
    const { as, osql } = raise;
    const caller = {
      subject: as,
      aclRoles: [...(service.service.model().snapshot?.subjects.get(as)?.ceiling ?? [])],
    };
    const { sqlstate, http } = ERRORS[name as ErrorName]; // one of its keys
    const rest = await frontends.asker('REST', caller);
    const { outcome: said } = await rest.ask(osql);
    if (said.kind !== 'refused') throw new Error(`${name} is answered`);
    if (name !== 'evaluation' && name !== 'negativeCount') t.equal(said.sqlstate, sqlstate, name);
    const wire = await frontends.asker('simple wire', caller);
    const { outcome: heard } = await wire.ask(osql);
    wire.end();
    t.same(heard, { ...said, hint: hintOn('wire', said.hint) }, `${name} on the wire`);
    const known = agents.get(as);
    const agent = known ?? (await connected({ port: frontends.httpPort, test: service }, as, 'auto'));
    agents.set(as, agent);
    const { code, message: detail, hint } = said;
    const problem = { code, sqlstate: said.sqlstate, detail, hint, status: http };
    const called = await call(agent, 'semantic_query', { osql });
    t.match(called, { isError: true, content: { status: http, problem } }, `${name} over MCP`);
    compared++;
  }
  t.ok(compared >= 27, `${compared} entries`);
});

test('a fault of ours is E5000, and no more is said of it', async (t) => {
  const fixture = await startRest({ serve: (service) => sealing(service, { engines: new Map() }) });
  t.teardown(() => fixture.close());
  const reply = await fixture.ask('user:ann', { osql: 'select 1' });
  t.match(reply.json(), { code: 'E5000', status: 500 });
  t.notMatch(reply.text, /connector|stack|\.js/);
});

test('an answer that is too long for the wire is an error, never a clipped one', async (t) => {
  const fixture = await startTestService();
  const caps = { ...fixture.service.caps, rows: 3 };
  const frontend = createPgFrontend({ ...fixture.service, caps });
  t.teardown(async () => {
    await frontend.stop(1_000);
    await fixture.close();
  });
  const { port } = await frontend.listen(0, '127.0.0.1');
  const client = await connectPg({ port, user: 'user:ann', password: await fixture.token('user:ann') });
  t.equal((await client.query('select id from customer limit 3')).rowCount, 3);
  await t.rejects(client.query('select id from customer'), { code: '54000' });
  await client.end();
});

async function raised(fixture: RestFixture, raise: Exclude<Raise, { file: string }>) {
  if ('osql' in raise) return fixture.ask(raise.as, { osql: raise.osql, ...raise.more });
  const token =
    raise.as === undefined
      ? null
      : raise.as.startsWith('user:')
        ? await fixture.test.token(raise.as)
        : raise.as;
  const authorization = token === null ? {} : { authorization: `Bearer ${token}` };
  const headers = {
    ...authorization,
    ...(raise.method === 'POST' ? { 'content-type': raise.type ?? 'application/json' } : {}),
  };
  return fixture.send(raise.http, {
    method: raise.method ?? 'GET',
    headers,
    ...(raise.body === undefined ? {} : { body: raise.body }),
  });
}

/** True if a test file, or one of the files below a folder, has `text`. */
function mentions(path: string, text: string): boolean {
  const full = join(process.cwd(), path);
  if (!existsSync(full)) return false;
  if (full.endsWith('.ts')) return readFileSync(full, 'utf8').includes(text);
  return filesBelow(full).some((file) => readFileSync(file, 'utf8').includes(text));
}

function filesBelow(dir: string): readonly string[] {
  return readdirSync(dir, { recursive: true, withFileTypes: true })
    .filter((e) => e.isFile())
    .map((e) => join(e.parentPath, e.name));
}
