import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { type BenchCaller, WORLDS, type WorldName, type Worlds } from '../endpoint.js';
import { run } from '../world.js';
import { withRole } from './postgres.js';
import { logOf, newDirectory, type StartedProcess, start } from './process.js';

/** Command that starts OSL Gateway. */
const command = (): string => process.env['LEAKBENCH_OSL'] ?? 'osl';
const ROLE = 'leakbench_osl';
/** Part of the policy. Without it the order of groups depends on statistics, of hidden rows too. */
export const ORDER = 'order: { customer: by_key, purchase: by_key, ticket: by_key }\n';

/** In the world `b` there are a column and an entity more, which the clerk may not see. */
const manifestOf = (world: WorldName): string => `version: 1
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
          notes: { type: jsonb, sensitivity: secret }${world === 'b' ? '\n          risk: { type: int4, sensitivity: secret }' : ''}
      public.purchase:
        columns:
          id: { type: int4, nullable: false }
          customer_id: { type: int4, nullable: false }
          region: { type: text, nullable: false }
          placed: { type: date, nullable: false }
          amount: { type: numeric, nullable: false }
          item: { type: text, nullable: false }
      public.ticket:
        columns:
          id: { type: int4, nullable: false }
          region: { type: text, nullable: false }
          code: { type: text, nullable: false }
          amount: { type: int4, nullable: false }
          about: { type: text, nullable: false }
      public.staff: { columns: { id: { type: int4, nullable: false }, name: { type: text }, salary: { type: int4 } } }${world === 'b' ? '\n      public.complaint: { columns: { id: { type: int4, nullable: false }, about: { type: text, nullable: false } } }' : ''}
entities:
  region: { source: db.public.region, primary_key: [code], columns: [code, label] }
  customer:
    source: db.public.customer
    primary_key: [id]
    columns: [id, region, name, code, credit, born, vip, tags, email, ssn, notes${world === 'b' ? ', risk' : ''}]
  purchase: { source: db.public.purchase, primary_key: [id], columns: [id, customer_id, region, placed, amount, item] }
  ticket: { source: db.public.ticket, primary_key: [id], columns: [id, region, code, amount, about] }
  staff: { source: db.public.staff, primary_key: [id], columns: [id, name, salary] }${world === 'b' ? '\n  complaint: { source: db.public.complaint, primary_key: [id], columns: [id, about] }' : ''}
`;

/** Policy of the clerk and of the callers who warm caches. No world has staff enough for a figure. */
export const POLICY = `version: 1
tenant: leakbench
subjects:
  user:clerk: { ceiling: [clerk], attributes: { region: north } }
  user:peer: { ceiling: [clerk], attributes: { region: south } }
  user:admin: { ceiling: [admin] }
roles:
  admin:
    grants:
      - { on: region, columns: "*" }
      - { on: customer, columns: "*", unmask: [pii, secret] }
      - { on: purchase, columns: "*" }
      - { on: staff, columns: "*" }
      - { on: ticket, columns: "*" }
  clerk:
    grants:
      - { on: region, columns: "*" }
      - on: customer
        columns: [id, region, name, code, credit, born, vip, tags, email]
        rows: region = attribute('region')
      - { on: purchase, columns: "*", rows: region = attribute('region') }
      - { on: ticket, columns: "*", rows: "replace(lower(btrim(region)), ' ', '') = attribute('region')" }
      - { on: staff, columns: [salary], min_group_size: 1000 }
masks: { pii: redact, secret: deny }
limits: { query: 100000, catalog: 100000 }
`;

/** A running gateway of one world. */
export interface StartedGateway extends StartedProcess {
  readonly httpPort: number;
  readonly pgPort: number;
}

async function startGateway(url: string, manifest: string, policy: string): Promise<StartedGateway> {
  const dir = newDirectory('osl');
  writeFileSync(join(dir, 'manifest.yaml'), manifest);
  writeFileSync(join(dir, 'policy.yaml'), policy);
  const args = ['serve', '--http-port', '0', '--pg-port', '0', '--json'];
  const running = await start(dir, command(), args, { LEAKBENCH_URL: url }, true);
  if (running.child.stdout === null) throw new Error('a child has a standard output');
  for await (const line of createInterface({ input: running.child.stdout })) {
    const { httpPort, pgPort } = JSON.parse(line) as { readonly httpPort?: number; readonly pgPort?: number };
    if (httpPort !== undefined && pgPort !== undefined) return { ...running, httpPort, pgPort };
  }
  const log = logOf(running);
  await running.stop();
  throw new Error(`the gateway ended before it listened: ${log}`);
}

/** Milliseconds for which a token is used; it lasts 300 s. */
const TOKEN_MS = 200_000;

/** Gateways of the worlds, and tokens for their callers. */
export class Gateways {
  readonly #gateways = new Map<WorldName, StartedGateway>();
  readonly #tokens = new Map<string, { readonly token: Promise<string>; readonly until: number }>();

  static async start(
    { owner }: Worlds,
    policy: string,
    change: (manifest: string) => string,
  ): Promise<Gateways> {
    const started = new Gateways();
    const grants = `grant usage on schema public to ${ROLE}; grant select on all tables in schema public to ${ROLE};`;
    try {
      await run(owner.a, withRole(ROLE, ''));
      await Promise.all(
        WORLDS.map(async (world) => {
          await run(owner[world], grants);
          const url = Object.assign(new URL(owner[world]), { username: ROLE, password: 'clerk' }).href;
          started.#gateways.set(world, await startGateway(url, change(manifestOf(world)), policy));
        }),
      );
    } catch (error) {
      await started.close();
      throw error;
    }
    return started;
  }

  of(world: WorldName): StartedGateway {
    const gateway = this.#gateways.get(world);
    if (gateway === undefined) throw new Error(`no gateway serves ${world}`);
    return gateway;
  }

  token(world: WorldName, caller: BenchCaller): Promise<string> {
    const key = `${world} ${caller}`;
    const known = this.#tokens.get(key);
    if (known !== undefined && Date.now() < known.until) return known.token;
    const token = createToken(this.of(world), caller);
    this.#tokens.set(key, { token, until: Date.now() + TOKEN_MS });
    return token;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#gateways.values()].map((gateway) => gateway.stop()));
  }
}

async function createToken({ dir }: StartedGateway, caller: BenchCaller): Promise<string> {
  const [program = '', ...args] = [...command().split(' '), 'token', '--subject', `user:${caller}`];
  const { stdout } = await promisify(execFile)(program, args, { cwd: dir });
  return stdout.trim();
}
