import { writeFileSync } from 'node:fs';
import { openEngine } from '../../../src/engine/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import type { NativePostgres } from '../../support/native-postgres.js';
import { startTestService, type TestService } from '../../support/service.js';

export const CALLERS = 10;
export const DEALS = 4_000;

const MANIFEST = `
version: 1
tenant: sharing
connectors:
  db:
    kind: pglite
    tables:
      sharing.deals:
        columns:
          id: { type: int4 }
          owner: { type: text, nullable: false }
          amount: { type: int4, nullable: false }
          note: { type: text, pii: true }
          closed: { type: timestamptz, nullable: false }
entities:
  deal: { source: db.sharing.deals, primary_key: [id], columns: [id, owner, amount, note, closed] }
`;

const SCRIPT = `
CREATE SCHEMA sharing;
CREATE TABLE sharing.deals (id int4 PRIMARY KEY, owner text NOT NULL, amount int4 NOT NULL, note text, closed timestamptz);
INSERT INTO sharing.deals 
  SELECT n, 'owner ' || n % ${CALLERS}, 7 * n, 'note ' || n, timestamptz '2026-01-01 12:00:00+00' + n * interval '1 second'
  FROM generate_series(1, ${DEALS}) n;
ANALYZE sharing.deals;`;

/** In version `version` caller `n` sees the deals of another owner; every second caller reads notes. */
function policyOf(version: number): string {
  const subjects = Array.from({ length: CALLERS }, (_, n) => {
    const roles = readsNotes(n) ? '[own, notes]' : '[own]';
    return `  user:${n}: { ceiling: ${roles}, attributes: { owner: "owner ${ownerOf(n, version)}" } }`;
  });
  return `
version: 1
tenant: sharing
subjects:
${subjects.join('\n')}
roles:
  own: { grants: [{ on: deal, columns: "*", rows: "owner = attribute('owner')" }] }
  notes: { grants: [{ on: deal, columns: "*", rows: "owner = attribute('owner')", unmask: [pii] }] }
masks: { pii: redact }
limits: { query: 100000, sample: 100000, schema: 100000, authoring: 100000, catalog: 100000 }
`;
}

/** Callers live in different zones; none of them has daylight saving. */
const ZONES = [
  { name: 'UTC', hours: 0, suffix: '+00' },
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

/** A gateway whose statements have one session to share, and two to run alone on. */
export interface World {
  readonly shop: TestService;
  readonly port: number;
  /** Of the policy that serves. */
  version(): number;
  /** Loads the next version of the policy: everybody sees other rows. */
  reload(): Promise<void>;
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
  const engines = new Map([[shop.service.defaultConnector, engine]]);
  const frontend = createPgFrontend({ ...shop.service, engines }, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  let version = 0;
  return {
    shop,
    port,
    version: () => version,
    async reload() {
      writeFileSync(shop.policyFile, policyOf(version + 1));
      await shop.open.reload();
      version++;
    },
    beside: (sql) => engine.system.script(sql),
    async close() {
      await frontend.stop();
      await engine.close();
      await shop.close();
    },
  };
}
