import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import {
  type Answer,
  type EndpointKind,
  NotExpressible,
  type Session,
  WORLDS,
  type WorldName,
} from '../endpoint.js';
import { run } from '../world.js';
import { openPostgres, withRole } from './postgres.js';

/** OSL Gateway, over the Postgres protocol and over REST. `LEAKBENCH_OSL` is the command to start it: `osl` by default. */
const command = (): readonly string[] => (process.env['LEAKBENCH_OSL'] ?? 'osl').split(' ');
const ROLE = 'leakbench_osl';
/** Results that read these have a total order, as groups otherwise have an order that depends on statistics. */
const ORDER = 'order: { customer: by_key, purchase: by_key }\n';

const MANIFEST = `version: 1
tenant: leakbench
features: { joins: any }
connectors:
  db:
    kind: postgres
    url_env: LEAKBENCH_URL
    tables:
      public.region: { columns: { code: { type: text, nullable: false }, label: { type: text, nullable: false } } }
      public.customer:
        columns:
          id: { type: int4, nullable: false }
          region: { type: text, nullable: false }
          name: { type: text, nullable: false }
          code: { type: text, nullable: false }
          credit: { type: numeric }
          born: { type: date, nullable: false }
          vip: { type: bool, nullable: false }
          tags: { type: "text[]", nullable: false }
          email: { type: text, nullable: false, sensitivity: pii }
          ssn: { type: text, nullable: false, sensitivity: secret }
          notes: { type: jsonb, sensitivity: secret }
      public.purchase:
        columns:
          id: { type: int4, nullable: false }
          customer_id: { type: int4, nullable: false }
          region: { type: text, nullable: false }
          placed: { type: date, nullable: false }
          amount: { type: numeric, nullable: false }
          item: { type: text, nullable: false }
      public.staff: { columns: { id: { type: int4, nullable: false }, name: { type: text }, salary: { type: int4 } } }
entities:
  region: { source: db.public.region, primary_key: [code], columns: [code, label] }
  customer:
    source: db.public.customer
    primary_key: [id]
    columns: [id, region, name, code, credit, born, vip, tags, email, ssn, notes]
  purchase: { source: db.public.purchase, primary_key: [id], columns: [id, customer_id, region, placed, amount, item] }
  staff: { source: db.public.staff, primary_key: [id], columns: [id, name, salary] }
`;

const POLICY = `version: 1
tenant: leakbench
subjects:
  user:clerk: { ceiling: [clerk], attributes: { region: north } }
roles:
  clerk:
    grants:
      - { on: region, columns: "*" }
      - on: customer
        columns: [id, region, name, code, credit, born, vip, tags, email]
        rows: region = attribute('region')
      - { on: purchase, columns: "*", rows: region = attribute('region') }
masks: { pii: redact, secret: deny }
limits: { query: 100000, catalog: 100000 }
`;

interface Gateway {
  readonly process: ChildProcess;
  readonly dir: string;
  readonly httpPort: number;
  readonly pgPort: number;
}

async function startGateway(url: string, policy: string): Promise<Gateway> {
  const dir = mkdtempSync(join(tmpdir(), 'leakbench-osl-'));
  writeFileSync(join(dir, 'manifest.yaml'), MANIFEST);
  writeFileSync(join(dir, 'policy.yaml'), policy);
  const [program = '', ...args] = [...command(), 'serve', '--http-port', '0', '--pg-port', '0', '--json'];
  const child = spawn(program, args, {
    cwd: dir,
    env: { ...process.env, LEAKBENCH_URL: url },
    stdio: ['ignore', 'pipe', openSync(join(dir, 'log'), 'w')],
  });
  if (child.stdout === null) throw new Error('a child has a standard output');
  for await (const line of createInterface({ input: child.stdout })) {
    const { httpPort, pgPort } = JSON.parse(line) as { readonly httpPort?: number; readonly pgPort?: number };
    if (httpPort !== undefined && pgPort !== undefined) return { process: child, dir, httpPort, pgPort };
  }
  throw new Error(`the gateway ended before it listened: ${readFileSync(join(dir, 'log'), 'utf8')}`);
}

async function stopGateway({ process: child, dir }: Gateway): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }
  rmSync(dir, { recursive: true, force: true });
}

/** Milliseconds for which a token is used; it lasts 300 s. */
const TOKEN_MS = 200_000;

/** Tokens of the clerk, by gateway. */
class Tokens {
  readonly #known = new Map<Gateway, { readonly token: string; readonly at: number }>();

  async of(gateway: Gateway): Promise<string> {
    const known = this.#known.get(gateway);
    if (known !== undefined && Date.now() - known.at < TOKEN_MS) return known.token;
    const [program = '', ...args] = [...command(), 'token', '--subject', 'user:clerk'];
    const { stdout } = await promisify(execFile)(program, args, { cwd: gateway.dir });
    const token = stdout.trim();
    this.#known.set(gateway, { token, at: Date.now() });
    return token;
  }
}

function osl(name: string, what: string, surface: 'wire' | 'rest', policy = POLICY + ORDER): EndpointKind {
  return {
    name,
    data: 'everything',
    start: async ({ owner }) => {
      const grants = `grant usage on schema public to ${ROLE}; grant select on all tables in schema public to ${ROLE};`;
      const gateways = new Map<WorldName, Gateway>();
      const close = async (): Promise<void> => {
        for (const gateway of gateways.values()) await stopGateway(gateway);
      };
      try {
        for (const world of WORLDS) {
          await run(owner[world], withRole(ROLE, grants));
          const url = Object.assign(new URL(owner[world]), { username: ROLE, password: 'clerk' }).href;
          gateways.set(world, await startGateway(url, policy));
        }
      } catch (error) {
        await close();
        throw error;
      }
      const tokens = new Tokens();
      return {
        what,
        open: async (world, login) => {
          const gateway = gateways.get(world);
          if (gateway === undefined) throw new Error(`no gateway serves ${world}`);
          const token = await tokens.of(gateway);
          if (surface === 'rest') return restSession(gateway, token, login !== undefined);
          const url = `postgres://user%3Aclerk:${token}@127.0.0.1:${gateway.pgPort}/osl`;
          return openPostgres(url, login);
        },
        close,
      };
    },
  };
}

function restSession({ httpPort }: Gateway, token: string, hasLogin: boolean): Session {
  if (hasLogin) throw new NotExpressible('a request has no login but its token');
  return {
    ask: async (text, values) => {
      const response = await fetch(`http://127.0.0.1:${httpPort}/osl/query`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ osql: text, ...(values !== undefined && { parameters: values }) }),
      });
      return answerOf((await response.json()) as Reply);
    },
    close: async () => undefined,
  };
}

interface Reply {
  readonly columns?: readonly { readonly name: string; readonly type: string }[];
  readonly rows?: readonly Readonly<Record<string, unknown>>[];
  readonly code?: string;
  readonly detail?: string;
  readonly title?: string;
}

function answerOf({ columns = [], rows = [], code, detail, title, ...rest }: Reply): Answer {
  const notices = ['notices', 'truncated', 'row_count'].map((name) =>
    JSON.stringify(Reflect.get(rest, name) ?? null),
  );
  return {
    columns: columns.map((c) => `${c.name} ${c.type}`),
    rows: rows.map((row) => columns.map((c) => JSON.stringify(row[c.name] ?? null))),
    tag: null,
    notices,
    error: code === undefined ? null : `${code} | ${title ?? ''} | ${detail ?? ''}`,
  };
}

export const OSL_WIRE = osl('OSL Gateway, wire', 'OSL Gateway over the Postgres protocol', 'wire');
export const OSL_UNORDERED = osl(
  'OSL Gateway, wire, groups in any order',
  'OSL Gateway over the Postgres protocol, without `order` in its policy',
  'wire',
  POLICY,
);
export const OSL_REST = osl('OSL Gateway, REST', 'OSL Gateway over REST', 'rest');
