import type { ErrorName } from 'osl-compiler';
import pg from 'pg';
import { WireClient } from '../../support/frontends.js';
import * as wire from '../../wire/support/bytes.js';
import { ANN, type Failure, failureOf, PASSWORD, ROOT, type Who, type World } from './world.js';

/** A request that fails, on one surface. */
export interface Case {
  readonly surface: string;
  /** What the caller gets: an entry of the catalogue, or an SQLSTATE of an engine or the protocol. */
  readonly gets: ErrorName | `SQLSTATE ${string}`;
  readonly fails: (world: World) => Promise<Failure | null>;
  /** HTTP status, where a surface has another than the catalogue's: OAuth and MCP say how. */
  readonly status?: number;
  /** Declared objects that the failing record must name. */
  readonly objects?: readonly string[];
  /** The right was there when the request was decided, and was lost, or found missing in data, while it ran. */
  readonly lostLater?: true;
}

const CUSTOMER = 'osl.entities.customer';
const BOSS: Who = { subject: 'user:root', roles: ['TENANT_ADMIN'] };

/** How a text can be asked. */
const LANES: Readonly<Record<string, (world: World, who: Who, text: string) => Promise<Failure | null>>> = {
  REST: (world, who, text) => world.http(who, '/osl/query', { body: { osql: text } }),
  'REST, as NDJSON': (world, who, text) =>
    world.http(who, '/osl/query', { body: { osql: text }, headers: { accept: 'application/x-ndjson' } }),
  'REST, as Arrow': (world, who, text) =>
    world.http(who, '/osl/query', {
      body: { osql: text },
      headers: { accept: 'application/vnd.apache.arrow.stream' },
    }),
  'REST, explained': (world, who, text) =>
    world.http(who, '/osl/query', { body: { osql: text, explain: true } }),
  MCP: (world, who, text) => world.mcp(who, 'semantic_query', { osql: text }),
  'MCP, explained': (world, who, text) => world.mcp(who, 'semantic_explain', { osql: text }),
  'simple query': (world, who, text) => world.wire(who, [text]),
  'extended query': (world, who, text) => world.wire(who, [text], 'extended'),
  COPY: (world, who, text) => world.wire(who, [`copy (${text}) to stdout`]),
  'binary COPY': (world, who, text) => world.wire(who, [`copy (${text}) to stdout (format binary)`]),
  cursor: (world, who, text) =>
    world.wire(who, ['begin', `declare c cursor for ${text}`, 'fetch all from c']),
  PREPARE: (world, who, text) => world.wire(who, [`prepare p as ${text}`, 'execute p']),
};
/** Where mistakes are made; lack of a right is tried everywhere. */
const QUERIES = ['REST', 'extended query'];
const ALL = Object.keys(LANES);
/** Where rows are read. */
const READ = ALL.filter((lane) => !lane.endsWith('explained'));
const REST_ALONE = ['REST', 'REST, explained', 'MCP'];

/** What makes a value of more than 1 MiB, the limit of a row here. */
const LARGE_VALUES = [
  "lpad('x', 1100000, 'yz')",
  "replace(repeat('x', 110000), 'x', '0123456789')",
  "concat(repeat('x', 600000), repeat(chr(1), 600000))",
  "array_agg(repeat('x', 300000))",
  "jsonb_agg(repeat('x', 300000))",
  "string_agg(repeat('x', 300000), ',')",
  Array.from({ length: 64 }, (_, at) => `repeat('x', 20000) as c${at}`).join(),
];

interface TextCase {
  readonly gets: Case['gets'];
  readonly who?: Who;
  readonly text: string;
  readonly on?: readonly string[];
  readonly objects?: readonly string[];
}

const DEN: Who = { subject: 'user:den' };
const NIL: Who = { subject: 'user:nil' };
const SUM: Who = { subject: 'user:sum' };

const TEXTS: readonly TextCase[] = [
  // ---- lack of a right
  { gets: 'noAccess', who: NIL, text: 'select id from customer', objects: [CUSTOMER], on: ALL },
  {
    gets: 'needsApproval',
    who: { subject: 'user:wait' },
    text: 'select id from customer',
    objects: [CUSTOMER],
    on: ALL,
  },
  { gets: 'denied', who: DEN, text: 'select email from customer', objects: [CUSTOMER], on: ALL },
  { gets: 'denied', who: DEN, text: 'select id from customer where email is null', objects: [CUSTOMER] },
  { gets: 'groupsOnly', who: SUM, text: 'select id from customer', objects: [CUSTOMER], on: ALL },
  {
    gets: 'keyNotClear',
    who: { subject: 'user:dull' },
    text: 'select p.label from product p join line l on l.product_id = p.id',
    objects: ['osl.entities.product'],
    on: ALL,
  },
  {
    gets: 'outsideAllowlist',
    text: 'select id from shop.samples',
    on: ['simple query', 'extended query', 'COPY'],
  },
  // ---- mistakes
  { gets: 'syntax', text: 'select 1 +', on: REST_ALONE },
  { gets: 'unsupported', text: 'explain select id from customer', on: REST_ALONE },
  { gets: 'switchedOff', text: 'select id, (select count(*) from "order") from customer', on: ALL },
  { gets: 'readOnly', text: 'delete from customer', on: REST_ALONE },
  { gets: 'temporaryTable', text: 'create temp table t as select id from customer', on: REST_ALONE },
  { gets: 'noStatement', text: '-- later', on: REST_ALONE },
  { gets: 'oneStatement', text: 'select 1; select 2', on: REST_ALONE },
  { gets: 'tooLarge', text: `select '${'x'.repeat(1_100_000)}'`, on: ['REST', 'simple query'] },
  { gets: 'tooComplex', text: `select ${'- '.repeat(11_000)} 1`, on: ['REST', 'simple query'] },
  { gets: 'tooManyColumns', text: `select ${'1,'.repeat(1_664)} 1`, on: ['REST', 'simple query'] },
  { gets: 'tooDeep', text: `select ${'abs('.repeat(500)}1${')'.repeat(500)}`, on: ['REST', 'simple query'] },
  { gets: 'typeMismatch', text: 'select id from customer where name', objects: [CUSTOMER], on: ALL },
  { gets: 'unknownFunction', text: 'select reckon(id) from customer', on: ALL },
  { gets: 'unknownOperator', text: "select id + '{}'::jsonb from customer" },
  { gets: 'unknownType', text: 'select id::regclass from customer' },
  { gets: 'ambiguous', text: 'select id from customer c join "order" o on o.customer_id = c.id' },
  { gets: 'duplicateAlias', text: 'select 1 from customer c join "order" c on c.id = c.customer_id' },
  { gets: 'grouping', text: 'select id, count(*) from customer' },
  { gets: 'windowing', text: 'select row_number() from customer' },
  { gets: 'invalidLiteral', text: "select id from customer where id = 'x'" },
  { gets: 'unknownRelation', text: 'select 1 from customers', on: ALL },
  { gets: 'unknownColumn', text: 'select nme from customer', objects: [CUSTOMER], on: ALL },
  { gets: 'unknownAlias', text: 'select x.id from customer c' },
  { gets: 'unknownMetric', text: 'select measure(profit) from "order"' },
  { gets: 'unsealedJoin', text: 'select 1 from customer c join "order" o on o.region = c.region' },
  { gets: 'unknownFacet', text: "select text from retrieve(facet => 'x', query => 'y', top_k => 1)" },
  // ---- what only a run shows
  { gets: 'evaluation', text: 'select 1 / (id - id) from customer' },
  { gets: 'unknownZone', text: "select now() at time zone 'Nowhere'" },
  { gets: 'negativeCount', text: 'select id from customer limit -1' },
  { gets: 'rowCap', text: 'select id from "order"', on: ['simple query', 'extended query', 'COPY'] },
  { gets: 'rowTooLarge', text: "select repeat('x', 1100000) from customer limit 1", on: READ },
  { gets: 'rowTooLarge', text: "select repeat('x', 1100000)", on: READ },
  { gets: 'rowTooLarge', text: "select repeat('x', 400000000)", on: ['REST', 'REST, as NDJSON', 'MCP'] },
  ...LARGE_VALUES.map((value) => ({
    gets: 'rowTooLarge' as const,
    text: `select ${value} from customer`,
  })),
  { gets: 'costCap', who: { subject: 'user:tight' }, text: 'select id from "order"' },
  {
    gets: 'stepCap',
    text: "select id from traverse(anchor => 'customer', target => 'order', keys => (1))",
    on: ['simple query', 'cursor'],
  },
  {
    gets: 'noDecoder',
    text: "select summarize(text) from retrieve(facet => 'labels', query => 'tea', top_k => 1)",
  },
  {
    gets: 'contentUnavailable',
    text: "select text from retrieve(facet => 'labels', query => 'tea', top_k => 1)",
  },
  { gets: 'sourceGone', text: 'select id from gone', objects: ['osl.entities.gone'] },
  { gets: 'sourceDenied', text: 'select id from shut', objects: ['osl.entities.shut'] },
  { gets: 'sourceChanged', text: 'select id + 1 from other', objects: ['osl.entities.other'] },
];

/** What the data-free engine of the catalog refuses: the log holds its SQLSTATE. */
const CATALOG: readonly TextCase[] = [
  { gets: 'SQLSTATE 42501', text: 'select * from pg_authid' },
  { gets: 'SQLSTATE 42501', text: 'select rolpassword from pg_catalog.pg_authid' },
  { gets: 'SQLSTATE 42501', text: 'select pg_sleep(1)' },
  { gets: 'SQLSTATE 42501', text: "select pg_read_file('/etc/passwd')" },
  { gets: 'SQLSTATE 22023', text: "select set_config('timezone', 'Nowhere/Here', false)" },
  { gets: 'SQLSTATE 42703', text: 'select nothing from information_schema.tables' },
  { gets: 'SQLSTATE 42P01', text: 'select * from pg_catalog.pg_nothing' },
  { gets: 'SQLSTATE 53200', text: "select repeat('x', 400000000)" },
  { gets: 'SQLSTATE 22012', text: 'select 1 / (relnatts - relnatts) from pg_class' },
  { gets: 'noAccess', who: NIL, text: 'select relname from pg_class' },
].map((found) => ({
  ...found,
  gets: found.gets as Case['gets'],
  on:
    found.gets === 'SQLSTATE 42501' || found.gets === 'noAccess'
      ? ['simple query', 'extended query', 'COPY', 'cursor', 'PREPARE']
      : ['simple query', 'extended query'],
}));

const texts: readonly Case[] = [...TEXTS, ...CATALOG].flatMap(
  ({ gets, who = ANN, text, on = QUERIES, objects }) =>
    on.map((lane) => ({
      surface: `${lane}: ${text.slice(0, 60)}`,
      gets,
      fails: (world: World) => (LANES[lane] ?? refuse)(world, who, text),
      ...(objects !== undefined && { objects }),
    })),
);

function refuse(): never {
  throw new Error('there is no such lane');
}

interface Sent {
  readonly who?: Who | string | null;
  readonly path: string;
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly objects?: readonly string[];
  readonly status?: number;
}

const JSON_OF_QUERY = { path: '/osl/query', who: ANN };
const COUNTED = { metrics: { n: { entity: 'order', expression: 'count(*)' } } };
const DRAFT = `draft-${'0'.repeat(32)}`;

const REQUESTS: readonly (Sent & { readonly gets: Case['gets'] })[] = [
  // ---- who calls
  { gets: 'missingToken', who: null, path: '/osl/conformance' },
  { gets: 'missingToken', who: null, path: '/admin/sessions' },
  { gets: 'missingToken', who: null, path: '/mcp', body: {}, status: 401 },
  { gets: 'invalidToken', who: 'broken', path: '/osl/conformance' },
  { gets: 'invalidToken', who: 'broken', path: '/admin/sessions' },
  { gets: 'invalidToken', who: 'broken', path: '/mcp', body: {} },
  { gets: 'invalidToken', who: { subject: 'user:ann', issuedAt: 1_600_000_000 }, path: '/osl/conformance' },
  // ---- the graph, samples, authoring
  { gets: 'adminOnly', who: ANN, path: '/osl/schema' },
  { gets: 'adminOnly', who: ANN, path: '/osl/domain-map' },
  { gets: 'noAccess', who: NIL, path: '/osl/schema?governed=true' },
  {
    gets: 'noAccess',
    who: NIL,
    path: '/osl/sample',
    body: { kind: 'table', name: 'customer' },
    objects: [CUSTOMER],
  },
  {
    gets: 'groupsOnly',
    who: SUM,
    path: '/osl/sample',
    body: { kind: 'table', name: 'customer' },
    objects: [CUSTOMER],
  },
  {
    gets: 'noApproval',
    who: ANN,
    path: '/osl/approvals/00000000-0000-4000-8000-000000000000',
    body: { decision: 'decline' },
  },
  { gets: 'unknownModel', who: ANN, path: '/osl/sample', body: { kind: 'table', name: 'nothing' } },
  { gets: 'unknownFacet', who: ANN, path: '/osl/sample', body: { kind: 'facet', name: 'nothing' } },
  { gets: 'authorsOnly', who: ANN, path: '/osl/candidates' },
  { gets: 'authorsOnly', who: ANN, path: '/osl/objects' },
  { gets: 'authorsOnly', who: ANN, path: '/osl/validate', body: { fragment: { metrics: {} } } },
  { gets: 'authorsOnly', who: ANN, path: '/osl/suggest', body: { term: 'sales' } },
  {
    gets: 'authorsOnly',
    who: ANN,
    path: '/osl/access/explain',
    body: { as: 'user:den', object: 'customer' },
  },
  { gets: 'unresolvable', who: BOSS, path: '/osl/validate', body: { draft: DRAFT } },
  { gets: 'baseRequired', who: BOSS, path: '/osl/objects', body: { fragment: COUNTED } },
  { gets: 'baseChanged', who: BOSS, path: '/osl/objects', body: { base_version: 'old', fragment: COUNTED } },
  {
    gets: 'notPublishable',
    who: BOSS,
    path: '/osl/objects',
    body: { base_version: 'old', fragment: { raw_sql: { allow: [] } } },
  },
  // ---- questions
  { gets: 'outsideAllowlist', ...JSON_OF_QUERY, body: { sql: 'table shop.samples' } },
  { gets: 'mixedWorlds', ...JSON_OF_QUERY, body: { sql: 'select measure(revenue) from shop.orders' } },
  {
    gets: 'notSubscribable',
    who: ANN,
    path: '/osl/subscribe',
    body: { osql: 'select id from osl.entities.customer limit 1' },
  },
  { gets: 'mixedBody', ...JSON_OF_QUERY, body: { osql: 'select 1', sql: 'select 1' } },
  { gets: 'emptySql', ...JSON_OF_QUERY, body: { sql: '' } },
  { gets: 'malformedBody', ...JSON_OF_QUERY, body: { osql: 'select 1', colour: 'red' } },
  {
    gets: 'inexactNumber',
    ...JSON_OF_QUERY,
    body: '{"osql":"select $1::int8","parameters":[9007199254740993]}',
  },
  {
    gets: 'denied',
    who: DEN,
    path: '/osl/query',
    body: { sql: 'select email from shop.customers' },
    objects: [CUSTOMER],
  },
  { gets: 'noAccess', who: NIL, path: '/osl/query', body: { metrics: ['revenue'] } },
  { gets: 'unknownDimension', ...JSON_OF_QUERY, body: { metrics: ['revenue'], group_by: ['order__colour'] } },
  { gets: 'unresolvable', ...JSON_OF_QUERY, body: { metrics: ['revenue'], group_by: ['product__label'] } },
  {
    gets: 'parameterType',
    ...JSON_OF_QUERY,
    body: { osql: 'select $1 is null, $3::int4', parameters: ['1', '2', '3'] },
  },
  { gets: 'parameterCount', ...JSON_OF_QUERY, body: { osql: 'select id from customer where id = $1' } },
  {
    gets: 'upstreamForAdmins',
    ...JSON_OF_QUERY,
    body: { osql: 'select id from customer', explain: true, upstream: 'plan' },
    objects: [CUSTOMER],
  },
  {
    gets: 'purposeDenied',
    ...JSON_OF_QUERY,
    body: { osql: 'select id from customer' },
    headers: { 'osl-purpose': 'audit' },
    objects: [CUSTOMER],
  },
  {
    gets: 'noGlass',
    ...JSON_OF_QUERY,
    body: { osql: 'select id from customer' },
    headers: { 'osl-break-glass': 'there%20is%20a%20fire' },
  },
  {
    gets: 'glassReason',
    who: { subject: 'user:hot' },
    path: '/osl/query',
    body: { osql: 'select 1' },
    headers: { 'osl-break-glass': 'fire' },
  },
  {
    gets: 'noArrowValue',
    ...JSON_OF_QUERY,
    body: { osql: 'select moments from sample' },
    headers: { accept: 'application/vnd.apache.arrow.stream' },
  },
  { gets: 'noAccess', who: NIL, path: '/osl/why?object=customer' },
  // ---- HTTP
  { gets: 'notFound', who: ANN, path: '/osl/nothing' },
  { gets: 'notFound', who: null, path: '/nothing' },
  { gets: 'methodNotAllowed', who: ANN, path: '/osl/query' },
  { gets: 'bodyTooLarge', ...JSON_OF_QUERY, body: ' '.repeat(3_000_000) },
  { gets: 'mediaType', ...JSON_OF_QUERY, body: 'x', headers: { 'content-type': 'text/plain' } },
  { gets: 'foreignOrigin', who: ANN, path: '/mcp', body: {}, headers: { origin: 'https://evil.example' } },
  // ---- tokens that are exchanged
  {
    gets: 'invalidToken',
    who: null,
    status: 400,
    path: '/oauth/token',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'grant_type=urn:ietf:params:oauth:grant-type:token-exchange&subject_token=x.y.z&subject_token_type=urn:ietf:params:oauth:token-type:jwt',
  },
  { gets: 'noReceipt', path: '/osl/receipts/00000000-0000-4000-8000-000000000000' },
  // ---- who runs the server
  { gets: 'operatorsOnly', who: ANN, path: '/admin/sessions' },
  { gets: 'operatorsOnly', who: ANN, path: '/admin/drain', method: 'POST' },
  { gets: 'operatorsOnly', who: ANN, path: '/admin/audit/records' },
  { gets: 'noSession', who: BOSS, path: '/admin/sessions/1/end', method: 'POST' },
  { gets: 'shadowRefused', who: BOSS, path: '/admin/policy/shadow/start', body: { policy: 'version: [' } },
];

const requests: readonly Case[] = REQUESTS.map(({ gets, who = ANN, path, objects, status, ...sent }) => ({
  surface: `${sent.method ?? ''} ${path} ${JSON.stringify(sent.body ?? '').slice(0, 60)}`,
  gets,
  fails: (world) => world.http(who, path, sent),
  ...(status !== undefined && { status }),
  ...(objects !== undefined && { objects }),
}));

/** A query, for the surfaces that take one. */
const ORDER = 'select id, note from "order" where id = 1';

const USES_OF_A_TOKEN: Readonly<Record<string, (world: World, token: string) => Promise<Failure | null>>> = {
  REST: (world, token) => world.http(token, '/osl/query', { body: { osql: ORDER } }),
  MCP: (world, token) => world.mcp(token, 'semantic_query', { osql: ORDER }),
  login: (world, token) => world.login(world.server.pgPort, 'user:ann', token),
  'admin request': (world, token) => world.http(token, '/admin/sessions'),
};

const OTHERS: readonly Case[] = [
  ...['osl', 'elsewhere'].map(
    (database): Case => ({
      surface: `login with a broken token, to ${database}`,
      gets: 'invalidToken',
      fails: (world) => world.login(world.server.pgPort, 'user:ann', 'broken', database),
    }),
  ),
  {
    surface: "login with somebody else's token",
    gets: 'invalidToken',
    fails: async (world) => world.login(world.server.pgPort, 'user:ada', await world.token(ANN)),
  },
  ...Object.entries(USES_OF_A_TOKEN).map(
    ([name, use]): Case => ({
      surface: `${name} with a token that was revoked`,
      gets: 'invalidToken',
      fails: async (world) => use(world, await world.revokedToken(ANN)),
    }),
  ),
  {
    surface: 'a second change with the token of one',
    gets: 'tokenUsed',
    fails: async (world) => {
      const token = await world.token(ROOT);
      await world.http(token, '/admin/resume', { method: 'POST' });
      return world.http(token, '/admin/resume', { method: 'POST' });
    },
  },
  {
    surface: 'login without a password',
    gets: 'SQLSTATE 28P01',
    fails: (world) => world.login(world.server.pgPort, 'user:ann', ''),
  },
  {
    surface: 'login to another database',
    gets: 'SQLSTATE 3D000',
    fails: async (world) => world.login(world.server.pgPort, 'user:ann', await world.token(ANN), 'elsewhere'),
    lostLater: true,
  },
  {
    surface: 'login of a service account with a wrong password',
    gets: 'SQLSTATE 28P01',
    fails: (world) => scramLogin(world, `${PASSWORD}!`),
  },
  {
    surface: 'login to the admin listener',
    gets: 'operatorsOnly',
    fails: async (world) =>
      world.login(world.server.adminPgPort, 'user:ann', await world.token(ANN), 'osl_admin'),
    lostLater: true,
  },
  {
    surface: 'a command of the admin listener that is none',
    gets: 'SQLSTATE 42601',
    fails: async (world) => adminCommand(world, 'grant all'),
  },
  {
    surface: 'a command of the admin listener that is not supported',
    gets: 'SQLSTATE 0A000',
    fails: async (world) => adminCommand(world, 'pause'),
  },
  {
    surface: 'a session of the admin listener that is not there',
    gets: 'noSession',
    fails: async (world) => adminCommand(world, 'kill 1'),
  },
  {
    surface: 'SET osl.token to a broken one',
    gets: 'invalidToken',
    fails: (world) => world.wire(ANN, ["set osl.token = 'broken'"]),
  },
  {
    surface: "SET osl.token to somebody else's",
    gets: 'invalidToken',
    fails: async (world) =>
      world.wire(ANN, [`set osl.token = '${await world.token({ subject: 'user:ada' })}'`]),
  },
  {
    surface: 'SET osl.break_glass',
    gets: 'noGlass',
    fails: (world) => world.wire(ANN, ["set osl.break_glass = 'there is a fire'"]),
  },
  {
    surface: 'SET osl.purpose, then a question',
    gets: 'purposeDenied',
    fails: (world) => world.wire(ANN, ["set osl.purpose = 'audit'", 'select id from customer']),
  },
  {
    surface: 'SET of nothing',
    gets: 'SQLSTATE 42704',
    fails: (world) => world.wire(ANN, ['set nothing = 1']),
  },
  ...[' from customer limit 1', ''].map((from) => ({
    surface: `cursors that keep their rows${from}`,
    gets: 'answerMemory' as const,
    fails: (world: World) =>
      world.wire(ANN, [
        'begin',
        ...Array.from({ length: 8 }, (_, at) => [
          `declare c${at} scroll cursor for select repeat('x', 900000)${from}`,
          `fetch all from c${at}`,
        ]).flat(),
      ]),
  })),
  { surface: 'FETCH', gets: 'SQLSTATE 34000', fails: (world) => world.wire(ANN, ['begin', 'fetch from c']) },
  { surface: 'DELETE', gets: 'readOnly', fails: (world) => world.wire(ANN, ['delete from customer']) },
  { surface: 'a syntax error', gets: 'syntax', fails: (world) => world.wire(ANN, ['select 1 +']) },
  {
    surface: 'catalog and data at once',
    gets: 'unsupported',
    fails: (world) => world.wire(ANN, ['select c.id from customer c, pg_class p']),
  },
  {
    surface: 'a statement that runs for too long',
    gets: 'timedOut',
    fails: (world) =>
      world.whileOrdersAreLocked(() => world.wire(ANN, ["set statement_timeout = '50ms'", ORDER])),
  },
  {
    surface: 'a parameter of a type that OSL-SQL has not',
    gets: 'declaredType',
    fails: async (world) => {
      const client = await world.session(ANN);
      const messages = await client.exchange(
        wire.parse('', 'select id from customer where region = $1', [600]),
        wire.sync,
      );
      client.end();
      return failureOf(messages);
    },
  },
  {
    surface: 'a question that is cancelled',
    gets: 'cancelled',
    fails: cancelled,
  },
  {
    surface: 'the same, of the catalog',
    gets: 'SQLSTATE 57014',
    fails: (world) =>
      world.wire(ANN, [
        "set statement_timeout = '50ms'",
        'select count(*) from pg_class a, pg_class b, pg_class c, pg_class d',
      ]),
  },
  {
    surface: 'a second change with one token',
    gets: 'tokenUsed',
    fails: async (world) => {
      const token = await world.token(ROOT);
      await world.http(token, '/admin/resume', { method: 'POST' });
      return world.http(token, '/admin/resume', { method: 'POST' });
    },
    lostLater: true,
  },
  ...['simple query', 'REST', 'COPY'].map(
    (lane): Case => ({
      surface: `${lane}: a right that is withdrawn while the question runs`,
      gets: 'rightsChanged',
      fails: (world) => withdrawn(world, () => (LANES[lane] ?? refuse)(world, ANN, ORDER)),
      objects: ['osl.entities.order'],
      lostLater: true,
    }),
  ),
  ...['data', 'catalog'].map(
    (what): Case => ({
      surface: `a cursor over ${what}, once the policy is tighter`,
      gets: 'rightsChanged',
      fails: async (world) => {
        const client = await world.session(ANN);
        const text = what === 'data' ? 'select id, note from "order"' : 'select relname from pg_class';
        await client.simple(`begin; declare c cursor for ${text}; fetch 1 from c`);
        return world.underPolicy(TIGHTER, async () => {
          const failure = failureOf(await client.exchange(wire.query('fetch 1 from c')));
          client.end();
          return failure;
        });
      },
      lostLater: true,
    }),
  ),
  {
    surface: 'a statement that was prepared, once it means something else',
    gets: 'planChanged',
    fails: async (world) => {
      const client = await world.session(ANN);
      await client.exchange(
        wire.parse('p', 'select * from "order" where id = 1'),
        wire.describe('S', 'p'),
        wire.sync,
      );
      return world.underPolicy(TIGHTER, async () => {
        const failure = failureOf(await client.exchange(wire.bind('', 'p'), wire.execute(), wire.sync));
        client.end();
        return failure;
      });
    },
  },
  ...['REST', 'MCP', 'login'].map(
    (surface): Case => ({
      surface: `${surface}, without a policy`,
      gets: 'noSnapshot',
      fails: async (world) => {
        const token = await world.token(ANN);
        return world.underPolicy(
          () => 'version: nonsense',
          () =>
            surface === 'login'
              ? world.login(world.server.pgPort, ANN.subject, token)
              : surface === 'MCP'
                ? world.http(token, '/mcp', { body: {} })
                : world.http(token, '/osl/query', { body: { osql: ORDER } }),
        );
      },
    }),
  ),
  {
    surface: 'more samples than the limit',
    gets: 'rateLimited',
    fails: (world) =>
      world.underPolicy(
        (policy) => policy.replace('sample: 100000', 'sample: 1'),
        async () => {
          const ask = () => world.http(ANN, '/osl/sample', { body: { kind: 'table', name: 'product' } });
          const all = await Promise.all([ask(), ask(), ask(), ask(), ask(), ask()]);
          return all.find((one) => one !== null) ?? null;
        },
      ),
  },
  {
    surface: 'a draft that was not validated',
    gets: 'wrongState',
    fails: async (world) => {
      await world.http(BOSS, '/osl/objects', { body: { fragment: COUNTED, state: 'draft' } });
      const [draft] = world.server.open.service.publishing.drafts.all();
      return world.http(BOSS, '/osl/objects', { body: { draft: draft?.id, base_version: world.manifest } });
    },
  },
  {
    surface: 'a draft that may not be published',
    gets: 'notPublishable',
    fails: async (world) => {
      await world.http(BOSS, '/osl/objects', {
        body: { fragment: { raw_sql: { allow: [] } }, state: 'draft' },
      });
      const draft = world.server.open.service.publishing.drafts
        .all()
        .find(({ text }) => text.includes('raw_sql'));
      return world.http(BOSS, '/osl/validate', { body: { draft: draft?.id } });
    },
  },
  {
    surface: 'a change that could not be served',
    gets: 'notServable',
    fails: (world) =>
      world.http(BOSS, '/osl/objects', {
        body: {
          base_version: world.manifest,
          fragment: { metrics: { n: { entity: 'nothing', expression: 'count(*)' } } },
        },
      }),
  },
  {
    surface: 'a glass that was broken often enough',
    gets: 'glassSpent',
    fails: async (world) => {
      const hot: Who = { subject: 'user:hot' };
      const ask = (reason: string) =>
        world.http(hot, '/osl/query', {
          body: { osql: 'select 1' },
          headers: { 'osl-break-glass': encodeURIComponent(reason) },
        });
      return (await ask('there is a fire')) ?? ask('there is another fire');
    },
    lostLater: true,
  },
];

/** Each entry that no case above gets, and why. */
export const UNREACHED: Readonly<Partial<Record<ErrorName, string>>> = {
  execution: 'a fault of the database: test/proof/conformance/checks/access.ts',
  decodeDenied: 'a language model: test/language/forms/decoders.test.ts',
  auditUnavailable: 'nothing can be recorded then: test/surfaces/rest/audit.test.ts',
  addressLimited: 'many requests of strangers, of which one is recorded: test/surfaces/rest/limits.test.ts',
  draftTooCostly: 'a draft of half a second: test/proof/budget/ways.test.ts',
  invalidCertificate: 'a listener with TLS and authorities: test/service/operations/certificates.test.ts',
  unknownLabel: 'as `invalidLiteral`, of a type that this model has not: test/surfaces/pg/enum-order.test.ts',
  notApprover: 'a request that waits: test/proof/attacks/approval.test.ts',
  approvalsFull: 'requests that wait: test/proof/attacks/approval.test.ts',
  approvalsUnavailable: 'a control database that goes away: test/proof/attacks/approval.test.ts',
  budgetSpent: 'a policy with budgets: test/service/operations/budgets.test.ts',
  entitiesSpent: 'a policy that counts entities: test/service/operations/entity-limits.test.ts',
  entitiesUnknown: 'a policy that counts entities: test/service/operations/entity-limits.test.ts',
  overlap: 'a policy that compares answers: test/ask/overlap.test.ts',
  overlapShape: 'a policy that compares answers: test/ask/overlap.test.ts',
  overlapSpent: 'a policy that compares answers: test/ask/overlap.test.ts',
  overlapUnknown: 'a policy that compares answers: test/ask/overlap.test.ts',
  uncountedEntities: 'a policy that counts entities: test/service/operations/entity-limits.test.ts',
  invalidTask: 'a policy with budgets: test/service/operations/budgets.test.ts',
  missingTask: 'a policy with budgets: test/service/operations/budgets.test.ts',
  tooManySubscriptions: 'subscriptions that stay open: test/surfaces/rest/subscribe.test.ts',
  rerankBudget: 'a reranker: test/language/forms/rerank.test.ts',
  rerankerUnavailable: 'a reranker: test/language/forms/rerank.test.ts',
  modelUnavailable: 'an embedding model: test/language/forms/dense.test.ts',
  limitsUnknown: 'a store of limits that is away: test/service/operations/away.test.ts',
  databaseDown: 'a database that goes away: test/service/operations/upstream.test.ts',
  storeClosed: 'a connector without credentials: test/service/operations/upstream.test.ts',
  formMissing: 'another kind of server: test/service/distributed/server-kinds.test.ts',
  shardsRefused: 'a Citus cluster: test/service/distributed/citus.test.ts',
  auditUnreadable: 'a log that is damaged: test/service/audit-search.test.ts',
  controlUnavailable: 'a control database that goes away: test/service/operations/gateways.test.ts',
  overloaded: 'a queue that is full: test/engine/postgres.test.ts',
  issuerUnavailable: 'an issuer that goes away: test/service/operations/issuers.test.ts',
  ownerUnreached: 'an owner that does not answer: test/surfaces/rest/why.test.ts',
  shuttingDown: 'the server stops then: test/surfaces/rest/streaming.test.ts',
  internal: 'a fault of ours: test/ask/respond.test.ts',
};

export const CASES: readonly Case[] = [...texts, ...requests, ...OTHERS];

async function adminCommand(world: World, text: string): Promise<Failure | null> {
  const { client } = await WireClient.attempt(
    world.server.adminPgPort ?? 0,
    ROOT.subject,
    await world.token(ROOT),
    { database: 'osl_admin' },
  );
  const messages = await client.exchange(wire.query(text));
  client.end();
  return failureOf(messages);
}

async function scramLogin(world: World, password: string): Promise<Failure | null> {
  const { pgPort: port } = world.server;
  const client = new pg.Client({ host: '127.0.0.1', port, user: 'tool', password, database: 'osl' });
  try {
    await client.connect();
    await client.end();
    return null;
  } catch (error) {
    const { code = null, message } = error as pg.DatabaseError; // what the driver makes of an ErrorResponse
    return { code: null, sqlstate: code, http: null, message, requestId: null };
  }
}

/** Waits for a lock; once it does, `stop` is done. */
async function stopped(
  world: World,
  ask: () => Promise<Failure | null>,
  stop: (world: World) => Promise<void>,
): Promise<Failure | null> {
  return world.whileOrdersAreLocked(async (blocked) => {
    const asked = ask();
    await blocked();
    await stop(world);
    return asked;
  });
}

function cancelled(world: World): Promise<Failure | null> {
  return world.whileOrdersAreLocked(async (blocked) => {
    const { client, messages } = await WireClient.attempt(
      world.server.pgPort,
      ANN.subject,
      await world.token(ANN),
    );
    const key = messages.find(({ type }) => type === 'K')?.body ?? Buffer.alloc(8);
    client.send(wire.query(ORDER));
    await blocked();
    const other = await WireClient.open(world.server.pgPort);
    other.send(wire.cancelRequest(key.readInt32BE(0), key.subarray(4)));
    const failure = failureOf(await client.messagesUntil('Z'));
    client.end();
    other.end();
    return failure;
  });
}

const TIGHTER = (policy: string): string =>
  policy.replaceAll('{ on: order, columns: "*" }', '{ on: order, columns: [id, region] }');

/** The right to what a statement reads is taken away while it runs. */
function withdrawn(world: World, ask: () => Promise<Failure | null>): Promise<Failure | null> {
  return stopped(world, ask, (of) => of.underPolicy(TIGHTER, async () => undefined));
}
