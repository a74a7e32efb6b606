import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { generatedSql } from '../../../src/base/sql.js';
import { openEngine } from '../../../src/engine/index.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { manifestText } from '../../support/model-text.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import { sealing } from '../../support/sealed-parts.js';
import { startTestService, type TestService } from '../../support/service.js';

export const CALLERS = 10;
export const DEALS = 4_000;

const MANIFEST = manifestText(
  'sharing',
  {
    'sharing.deals': `id int4, owner text not null, amount int4 not null, note text pii, closed timestamptz not null`,
    'sharing.dearer': `id int4, owner text not null, amount int4 not null, note text pii, closed timestamptz not null`,
  },
  `entities:
  deal: { source: db.sharing.deals, primary_key: [id], columns: [id, owner, amount, note, closed] }
`,
);

const SCRIPT = `
CREATE SCHEMA sharing;
CREATE TABLE sharing.deals (id int4 PRIMARY KEY, owner text NOT NULL, amount int4 NOT NULL, note text, closed timestamptz);
INSERT INTO sharing.deals 
  SELECT n, 'owner ' || n % ${CALLERS}, 7 * n, 'note ' || n, timestamptz '2026-01-01 12:00:00+00' + n * interval '1 second'
  FROM generate_series(1, ${DEALS}) n;
CREATE TABLE sharing.dearer (LIKE sharing.deals INCLUDING ALL);
INSERT INTO sharing.dearer SELECT id, owner, amount / 7 * 9, note, closed FROM sharing.deals;
ANALYZE sharing.deals, sharing.dearer;`;

/** In every fifth version deals are those of a table with other amounts. */
function manifestOf(manifest: string, version: number): string {
  return priceOf(version) === 7
    ? manifest
    : manifest.replace('source: db.sharing.deals', 'source: db.sharing.dearer');
}

/** What a deal costs, by its number. */
export function priceOf(version: number): 7 | 9 {
  return version % 5 === 4 ? 9 : 7;
}

/**
 * What the published metric `worth` multiplies the amount by after so many changes; null while there is none. Every
 * third change rolls back to what was published first.
 */
export function factorAfter(changes: number): number | null {
  if (changes === 0) return null;
  return changes % 3 === 0 ? 2 : changes + 1;
}

/** Now and then the policy does not know a caller. */
export function isRevoked(caller: number, version: number): boolean {
  return version % 4 === 3 && (caller + version) % 3 === 0;
}

/** In version `version` caller `n` sees the deals of another owner; every second caller reads notes. */
function policyOf(version: number): string {
  const subjects = Array.from({ length: CALLERS }, (_, n) => {
    if (isRevoked(n, version)) return '';
    const roles = readsNotes(n) ? '[own, notes]' : '[own]';
    return `  user:${n}: { ceiling: ${roles}, attributes: { owner: "owner ${ownerOf(n, version)}" } }`;
  });
  return `
version: 1
tenant: sharing
subjects:
${subjects.join('\n')}
  user:admin: { ceiling: [own], admin: [TENANT_ADMIN], attributes: { owner: nobody } }
roles:
  own: { grants: [{ on: deal, columns: "*", rows: "owner = attribute('owner')" }] }
  notes: { grants: [{ on: deal, columns: "*", rows: "owner = attribute('owner')", unmask: [pii] }] }
masks: { pii: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`;
}

/** Callers live in different zones; none of them has daylight saving. Those of the first one ask fast. */
const ZONES = [
  { name: null, hours: 0, suffix: '+00' },
  { name: null, hours: 0, suffix: '+00' },
  { name: 'Asia/Tokyo', hours: 9, suffix: '+09' },
  { name: 'America/Panama', hours: -5, suffix: '-05' },
] as const;

export function zoneOf(caller: number): (typeof ZONES)[number] {
  return ZONES[caller % ZONES.length] ?? ZONES[0];
}

export function ownerOf(caller: number, version: number): number {
  return (caller + version) % CALLERS;
}

export function readsNotes(caller: number): boolean {
  return caller % 2 === 1;
}

const KILL = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid() AND usename <> current_user`;

/** A gateway whose statements have one session to share, and two to run alone on. */
export interface World {
  readonly shop: TestService;
  readonly port: number;
  /** Of the policy that serves. */
  version(): number;
  /** True if another version is being taken up, and may serve already. */
  turning(): boolean;
  /** Questions that went fast. */
  fast(): number;
  /** How often the sessions of the database were killed; `dying` while some may not have been heard of. */
  kills(): { readonly count: number; readonly dying: boolean };
  /** Loads the next version of the policy, and of the manifest: everybody sees other rows. */
  reload(): Promise<void>;
  /** Changes of what is published; `changing` while one is under way that may serve already. */
  published(): { readonly count: number; readonly changing: boolean };
  /** Publishes another `worth`, or rolls back to the first one. */
  publish(): Promise<void>;
  /** Ends the gateway's sessions in the database, whatever they run. */
  kill(): Promise<void>;
  /** Runs SQL beside the gateway, as the owner of the tables. */
  beside(sql: string): Promise<void>;
  close(): Promise<void>;
}

export async function startWorld(postgres: NativePostgres): Promise<World> {
  const shop = await startTestService({
    postgres,
    manifest: MANIFEST,
    policy: policyOf(0),
    script: SCRIPT,
    schema: 'sharing',
  });
  const engine = await openEngine({
    kind: 'postgres',
    url: postgres.readerUrl,
    systemUrl: postgres.url,
    poolSize: 2,
    sharedSessions: 1,
    waitMs: 30_000,
  });
  const engines = new Map([[shop.service.defaultConnector, engine.governed]]);
  const frontend = createPgFrontend(sealing(shop.service, { engines }), {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  const rest = await createHttpServer(shop.service);
  const { port: restPort } = await rest.listen(0, '127.0.0.1');
  const objects = async (body?: object): Promise<string> => {
    const authorization = `Bearer ${await shop.token('user:admin', { roles: ['TENANT_ADMIN'] })}`;
    const reply = await fetch(`http://127.0.0.1:${restPort}/osl/objects`, {
      headers: { authorization, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    const text = await reply.text();
    if (!reply.ok) throw new Error(text);
    return JSON.parse(text).version;
  };
  let version = 0;
  let turning = false;
  let changes = 0;
  let changing = false;
  let count = 0;
  let dying = false;
  const manifestFile = join(dirname(shop.policyFile), 'manifest.yaml');
  const manifest = readFileSync(manifestFile, 'utf8');
  return {
    shop,
    port,
    version: () => version,
    turning: () => turning,
    fast: () => frontend.fastQuestions,
    kills: () => ({ count, dying }),
    published: () => ({ count: changes, changing }),
    async publish() {
      const next = changes + 1;
      const worth = { entity: 'deal', expression: `sum(amount) * ${factorAfter(next)}` };
      const change = next % 3 === 0 ? { rollback: 1 } : { fragment: { metrics: { worth } } };
      changing = true;
      await objects({ ...change, base_version: await objects() });
      changes = next;
      changing = false;
    },
    async kill() {
      count++;
      dying = true;
      await engine.system.script(generatedSql(KILL));
      await pause(300);
      dying = false;
    },
    async reload() {
      writeFileSync(manifestFile, manifestOf(manifest, version + 1));
      writeFileSync(shop.policyFile, policyOf(version + 1));
      turning = true;
      await shop.open.reload();
      version++;
      turning = false;
    },
    beside: (sql) => engine.system.script(generatedSql(sql)),
    async close() {
      await rest.close(0);
      await frontend.stop();
      await engine.close();
      await shop.close();
    },
  };
}
