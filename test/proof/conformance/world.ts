import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FEATURES } from 'osl-compiler';
import type { Test } from 'tap';
import type { ContentSettings } from '../../../src/service/indexing/content.js';
import { indexContent } from '../../../src/service/indexing/index-content.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { chat, modelServer } from '../../content/server.js';
import { hmac, PUBLIC_PEM, type Signer, seal } from '../../policy/tokens.js';
import { bridgeText, facetText, grantsText, manifestText, policyText } from '../../support/model-text.js';
import type { TokenClaims } from '../../support/service.js';
import { type RestFixture, type Sent, startRest } from '../../surfaces/rest/fixture.js';
import { at } from './json.js';
import { type Heard, heardFromMcp, heardOf, openWire, type Told, textsOf } from './surfaces.js';

/** A library: books with authors through a bridge, reviews of books, and members whose codes are secret. */
const MANIFEST = manifestText(
  'library',
  {
    'lib.t_book': `id int4, title text not null, region text not null, pages int4 not null, owner text pii, email text,
    shelf text locked`,
    'lib.t_author': 'id int4, name text not null',
    'lib.t_wrote': 'book int4, author int4',
    'lib.t_review': `id text, book_id int4 not null, lang text not null, reviewer text person, body text not null`,
    'lib.t_member': 'code text secret, since int4',
    'lib.t_letter': 'id text, member text, body text',
  },
  `entities:
  book:
    source: db.lib.t_book
    primary_key: [id]
    columns: [id, title, region, pages, owner, email, shelf]
    legs: [reviews]
    derived:
      topic: { facet: reviews, operator: CLASSIFY, labels: [whales, stars], min_score: 0.01 }
  author:
    description: Who wrote a book.
    source: db.lib.t_author
    primary_key: [id]
    columns: [id, name]
  member: { source: db.lib.t_member, primary_key: [code], columns: [code, since] }
bridges:
${bridgeText('wrote', 'lib.t_wrote', ['book', 'book'], ['author', 'author'])}
facets:
${facetText('reviews', 'lib.t_review', 'book', 'book_id')}
    metadata: [lang, reviewer]
    scalar_indexed: [book_id, lang]
    versions: { raw: {}, masked: { redact: [pii, person] } }
    retrieval: { max_top_k: 20 }
${facetText('letters', 'lib.t_letter', 'member', 'member')}
    scalar_indexed: [member]
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
metrics:
  page_total: { entity: book, expression: sum(pages) }
lexicon:
  volume: { refers_to: book }
raw_sql:
  allow: [db.lib.t_book]
`,
);

/**
 * `user:ann` masked · `user:ada` clear, and to a language model · `user:eu` books of the EU · `user:few` books only · `user:nil` nothing ·
 * `user:key` members with their codes, and their letters ·
 * `user:root` as `user:ann`, and an admin where the token claims it
 */
const POLICY = policyText(
  'library',
  {
    'user:ann': 'reader',
    'user:ada': 'clear',
    'user:eu': 'regional { attributes: { region: eu } }',
    'user:few': 'few',
    'user:nil': '',
    'user:root': 'reader { admin: [TENANT_ADMIN] }',
    'user:key': 'vault',
  },
  `roles:
  reader:
    grants:
${grantsText(['book', 'author', 'wrote', 'reviews', 'member', 'letters'])}
  clear:
    grants:
      - { on: book, columns: "*", unmask: [pii] }
      - { on: reviews, columns: "*", unmask: [pii, person], decode: true }
  regional:
    grants:
      - { on: book, columns: [id, title, region], rows: "region = attribute('region')" }
${grantsText(['author', 'wrote', 'reviews'])}
  few:
    grants:
      - { on: book, columns: [id, title] }
  vault:
    grants:
      - { on: member, columns: "*", unmask: [secret] }
      - { on: letters, columns: "*", unmask: [secret] }
masks: { pii: redact, person: redact, secret: redact, locked: deny }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`,
);

const SCRIPT = `
CREATE SCHEMA lib;
CREATE TABLE lib.t_book (id int4 PRIMARY KEY, title text NOT NULL, region text NOT NULL, pages int4 NOT NULL,
  owner text, email text, shelf text);
CREATE TABLE lib.t_author (id int4 PRIMARY KEY, name text NOT NULL);
CREATE TABLE lib.t_wrote (book int4, author int4, PRIMARY KEY (book, author));
CREATE TABLE lib.t_review (id text PRIMARY KEY, book_id int4 NOT NULL, lang text NOT NULL, reviewer text,
  body text NOT NULL);
CREATE TABLE lib.t_member (code text PRIMARY KEY, since int4);
CREATE TABLE lib.t_letter (id text PRIMARY KEY, member text, body text);
CREATE TABLE lib.t_loan (id int4 PRIMARY KEY, book_id int4 NOT NULL REFERENCES lib.t_book, until date);
INSERT INTO lib.t_book SELECT n, 'Book ' || n, CASE WHEN n % 2 = 1 THEN 'eu' ELSE 'us' END, 100 * n,
  'Owner Quux ' || n, 'box' || n, 'hidden shelf' FROM generate_series(1, 12) AS n;
INSERT INTO lib.t_author VALUES (1, 'Zora'), (2, 'Yves'), (3, 'Xiu');
INSERT INTO lib.t_author SELECT n, 'Author ' || n FROM generate_series(101, 1101) AS n;
INSERT INTO lib.t_wrote VALUES (1, 1), (1, 2), (2, 2), (3, 1);
INSERT INTO lib.t_wrote SELECT 12, n FROM generate_series(101, 1101) AS n;
INSERT INTO lib.t_review SELECT 'r' || n, 1 + n % 6, CASE WHEN n % 3 = 0 THEN 'de' ELSE 'en' END, 'Ira Critic',
  'A review of ' || CASE WHEN n % 2 = 0 THEN 'whales' ELSE 'stars' END || ', the number ' || n || '.' ||
  CASE WHEN n = 11 THEN ' It is by Ira Critic.' ELSE '' END
  FROM generate_series(1, 12) AS n;
INSERT INTO lib.t_member VALUES ('m-1''; --', 1999), ('m-2', 2001);
INSERT INTO lib.t_letter VALUES ('l1', 'm-1''; --', 'A letter on the roof.');
`;

/**
 * What a request shows of a rule. `answered`: what must be answered is. `refused`: what must not be is refused.
 * `withheld`: an answer comes without what its caller may not see.
 */
type CaseKind = 'answered' | 'refused' | 'withheld';

/** A request that a check made, and what came back. */
export interface Exchange {
  readonly request: string;
  readonly answer: string;
  readonly kind: CaseKind;
}

/** Who asks what. */
interface Server {
  post(subject: string, path: string, body: unknown, claims?: TokenClaims): Promise<Heard>;
  /** `known`: the entity tag of an answer that the caller has. */
  get(subject: string, path: string, claims?: TokenClaims, known?: string): Promise<Heard>;
  /** A call of a tool at `POST /mcp`, without a session; `subject` '' sends no token of its own. */
  mcp(
    subject: string,
    tool: string,
    args: object,
    headers?: Readonly<Record<string, string>>,
    from?: string,
  ): Promise<Heard>;
  /** What `tools/list` of `POST /mcp` says. */
  mcpTools(subject: string): Promise<Heard>;
  /** `as`: the page's words for who asks. */
  send(path: string, sent?: Sent, as?: string): Promise<Heard>;
}

/** One running service that all checks ask, over HTTP. */
export interface World extends Server {
  readonly rest: RestFixture;
  /** What was asked since it was last told. */
  exchanges(): readonly Exchange[];
  /** `POST /osl/query`. */
  osql(subject: string, osql: string, more?: Readonly<Record<string, unknown>>): Promise<Heard>;
  /**
   * The same text at REST, at MCP and on the wire, with the code that each of them tells; '' where it answers.
   *
   * @param kind what it shows where it answers
   */
  everywhere(subject: string, osql: string, kind?: CaseKind): Promise<readonly Told[]>;
  /** Counts the last answer, `heard`, as the negative case that it is: nothing in it matches `hidden`. */
  withheld(t: Test, heard: Heard, hidden: RegExp): void;
  /** A token of exactly these members, signed with the tenant's secret unless told. */
  seal(header: object, claims: object, signer?: Signer): string;
  /** What the language model was sent. */
  sentToModel(): readonly string[];
  /**
   * A second service of the same model: its policy says nothing of limits, its manifest allows no extension, and it has
   * no language model.
   */
  plain(): Promise<Server>;
  close(): Promise<void>;
}

const NO_EXTENSIONS = `
features:
${Object.keys(FEATURES)
  .map((name) => `  ${name}: false\n`)
  .join('')}`;

export async function openWorld(): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-conformance-'));
  const issuer = join(dir, 'issuer.pem');
  writeFileSync(issuer, PUBLIC_PEM);
  const model = await modelServer();
  model.answer = (asked, response) => chat(response, filled(asked.body));
  const open = async (manifest: string, policy: string, content: ContentSettings): Promise<RestFixture> => {
    const opened = await startRest({
      embedded: true, // some rules are about passages, which need pgvector
      manifest,
      policy,
      script: SCRIPT,
      schema: 'lib',
      settings: { publicKeyFiles: [{ kid: null, file: issuer }], content },
    });
    const { open, service } = opened.test;
    await indexContent(service.model().manifest, open.databases, content, [], () => undefined);
    return opened;
  };
  const withModel = { OSL_CHAT_URL: model.url, OSL_CHAT_MODEL: 'm1' };
  const rest = await open(MANIFEST, POLICY, settingsFrom(withModel, '/').content);
  const others: RestFixture[] = [];
  const asked: Asked[] = [];
  const server = serverOf(rest, asked);
  const wire = await openWire(rest.test);
  return {
    rest,
    ...server,
    exchanges: () => asked.splice(0),
    osql: (subject, osql, more = {}) => server.post(subject, '/osl/query', { osql, ...more }),
    everywhere: async (subject, osql, kind = 'answered') => {
      const before = asked.length;
      const atRest = await server.post(subject, '/osl/query', { osql });
      const atMcp = await server.mcp(subject, 'semantic_query', { osql });
      const onWire = await wire.ask(subject, osql);
      asked.push({
        request: `${subject}: wire ${inOneLine(osql)}`,
        answer: onWire.code === '' ? 'answered' : onWire.code,
        kind: onWire.code === '' ? 'answered' : 'refused',
      });
      for (const entry of asked.slice(before)) if (entry.kind === 'answered') entry.kind = kind;
      return [
        { surface: 'REST', status: atRest.status, code: atRest.code, rows: textsOf(atRest.rows) },
        { surface: 'MCP', status: atMcp.status, code: atMcp.code, rows: textsOf(atMcp.rows) },
        onWire,
      ];
    },
    withheld: (t, { status, text }, hidden) => {
      t.equal(status, 200);
      t.notMatch(text, hidden);
      const last = asked.at(-1);
      if (last !== undefined) last.kind = 'withheld';
    },
    seal: (header, claims, signer = hmac(rest.test.open.keys.signing)) =>
      seal(JSON.stringify(header), JSON.stringify(claims), signer),
    sentToModel: () => model.asked.splice(0).map(({ body }) => JSON.stringify(body)),
    plain: async () => {
      const policy = POLICY.replace(/^limits: .*$/m, '');
      const { content } = settingsFrom({}, '/');
      const [first = await open(`${MANIFEST}${NO_EXTENSIONS}`, policy, content)] = others;
      others[0] = first;
      return serverOf(first, asked);
    },
    close: async () => {
      await wire.close();
      for (const { close } of [rest, ...others, model]) await close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** An answer of the shape that a language model was asked for. */
function filled(asked: unknown): object {
  const shape = at(asked, 'response_format', 'json_schema', 'schema', 'properties');
  const names = Object.keys(shape ?? {});
  return Object.fromEntries(names.map((name) => [name, name === 'score' ? 0.5 : 'made']));
}

/** A request under way, or answered. */
type Asked = { -readonly [K in keyof Exchange]: Exchange[K] };

const MCP_HEADERS = {
  accept: 'application/json, text/event-stream',
  'content-type': 'application/json',
};

function serverOf(rest: RestFixture, asked: Asked[]): Server {
  const told = async (request: string, path: string, sent: Sent, read = heardOf): Promise<Heard> => {
    const entry: Asked = { request, answer: '', kind: 'refused' };
    asked.push(entry); // in the order of the requests, whatever is answered first
    const answer = read(await rest.send(path, sent));
    entry.answer = `${answer.status} ${answer.code}`.trim();
    entry.kind = answer.status < 400 && answer.code === '' ? 'answered' : 'refused';
    return answer;
  };
  const bearer = async (subject: string, claims: TokenClaims) => ({
    authorization: `Bearer ${await rest.test.token(subject, claims)}`,
  });
  const rpc = async (who: string, method: string, params: object, more: Sent = {}): Promise<Heard> => {
    const headers = {
      ...MCP_HEADERS,
      ...(who === '' ? {} : await bearer(who, {})),
      ...more.headers,
    };
    const body = { jsonrpc: '2.0', id: 1, method, params };
    const request = inOneLine(`${who === '' ? '' : `${who}: `}MCP ${method} ${JSON.stringify(params)}`);
    return told(request, '/mcp', { ...more, method: 'POST', headers, body }, heardFromMcp);
  };
  return {
    send: (path, sent = {}, as = '') => told(requestLine(path, sent, as), path, sent),
    post: async (subject, path, body, claims = {}) => {
      const headers = { ...(await bearer(subject, claims)), 'content-type': 'application/json' };
      const sent = { method: 'POST', headers, body };
      return told(requestLine(path, sent, subject, claims), path, sent);
    },
    get: async (subject, path, claims = {}, known = '') => {
      const headers = await bearer(subject, claims);
      const sent = { headers: known === '' ? headers : { ...headers, 'if-none-match': known } };
      return told(requestLine(path, sent, subject, claims), path, sent);
    },
    mcp: (subject, tool, args, headers = {}, from) =>
      rpc(subject, 'tools/call', { name: tool, arguments: args }, { headers, ...(from && { from }) }),
    mcpTools: (subject) => rpc(subject, 'tools/list', {}),
  };
}

/** Who asks what, without what differs from run to run. */
function requestLine(
  path: string,
  { method = 'GET', body }: Sent,
  who: string,
  claims: TokenClaims = {},
): string {
  const said = body === undefined ? '' : ` ${typeof body === 'string' ? body : JSON.stringify(body)}`;
  const chain = claims.chain?.join(' → ') ?? who;
  const line = `${chain === '' ? '' : `${chain}: `}${method} ${path}${said}`;
  return inOneLine(line.replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, '(the token)'));
}

function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}
