import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { AuditEntry } from '../../../../audit/index.js';
import { mintToken } from '../../../../policy/index.js';
import { openService } from '../../../../src/service/open.js';
import type { Service } from '../../../../src/service/service.js';
import { settingsFrom } from '../../../../src/service/settings.js';
import { type CatalogOptions, Catalogs } from '../../../../src/surfaces/catalog/index.js';
import { createPgFrontend } from '../../../../src/surfaces/pg/index.js';
import { emptyDatabases } from '../../../support/embedded-data.js';
import { grantsText, policyText } from '../../../support/model-text.js';
import { connectPg } from '../../../support/pg-client.js';
import { sealedParts, sealing } from '../../../support/sealed-parts.js';
import { watchedLog } from '../../../support/watched-log.js';

/** Names that the clerk must never find: of relations, columns, metrics, roles, and of the upstream's own objects. */
export const HIDDEN = [
  'salary_hidden',
  'passport_hidden',
  'bonus_hidden',
  'chief_hidden',
  'upstream_hidden',
  'wages_hidden',
  'fingerprint_hidden',
  'paid_hidden',
  'letters_hidden',
  'author_hidden',
] as const;

const MANIFEST = `
version: 1
tenant: test
connectors:
  main:
    kind: pglite
    tables:
      upstream_hidden.wages_hidden:
        columns:
          id: { type: int4 }
          person: { type: int4, nullable: false }
          amount: { type: numeric }
      upstream_hidden.person:
        columns:
          id: { type: int4 }
          name: { type: text, nullable: false }
          email: { type: text, pii: true }
          born: { type: date }
          tags: { type: 'text[]' }
          extra: { type: jsonb }
          passport_hidden: { type: text }
          fingerprint: { type: bytea, sensitivity: fingerprint_hidden }
          city_id: { type: int8 }
      upstream_hidden.diaries:
        columns:
          doc: { type: text }
          person_id: { type: int4 }
          body: { type: text }
          query: { type: text }
          written: { type: timestamptz }
          author_hidden: { type: text }
      upstream_hidden.city:
        columns:
          id: { type: int8 }
          name: { type: text, nullable: false }
          founded: { type: timestamptz }
      upstream_hidden.visit:
        columns:
          person_id: { type: int4 }
          city_id: { type: int8 }
          at: { type: timestamp }
entities:
  salary_hidden:
    description: What salary_hidden is.
    source: main.upstream_hidden.wages_hidden
    primary_key: [id]
    entity_key_columns: [id, person]
    columns: { id: , person: , amount: }
  person:
    description: "Someone; \\"quoted\\" and O'Brien \\\\ too."
    source: main.upstream_hidden.person
    primary_key: [id]
    entity_key_columns: [id, city_id]
    columns:
      id: { description: A number. }
      name:
      email:
      born:
      tags:
      extra:
      passport_hidden: { description: What passport_hidden is. }
      fingerprint:
      city_id: { column: city_id }
  city: { source: main.upstream_hidden.city, primary_key: [id], columns: { id: , name: , founded: } }
bridges:
  visit:
    source: main.upstream_hidden.visit
    left: { entity: person, columns: [person_id] }
    right: { entity: city, columns: [city_id] }
    columns: { person_id: , city_id: , at: }
relationships:
  lives_in: { from: person.city_id, to: city.id, kind: many_to_one, description: "Where O'Brien lives; \\"at 100 %\\" \\\\ too." }
  paid_hidden: { from: salary_hidden.person, to: person.id, kind: many_to_one, description: a comment of hidden pay }
facets:
  diary:
    description: "What persons wrote; \\"quoted\\" and O'Brien \\\\ too."
    source: main.upstream_hidden.diaries
    entity: person
    entity_key: person_id
    document_id: doc
    text: body
    metadata: { query: , written: , author_hidden: }
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
  letters_hidden:
    source: main.upstream_hidden.diaries
    entity: person
    entity_key: person_id
    document_id: doc
    text: body
    versions: { raw: {} }
    retrieval: { max_top_k: 5 }
metrics:
  people: { description: Number of persons., entity: person, expression: count(*), format: { kind: number, unit: persons } }
  bonus_hidden: { entity: salary_hidden, expression: sum(amount) }
`;

const POLICY = policyText(
  'test',
  {
    'user:clerk': 'clerk',
    'user:clerk2': 'clerk',
    'user:chief': 'chief_hidden',
    'user:nobody': '',
  },
  `${Array.from({ length: 4 }, (_, i) => `  user:u${i}: { ceiling: [r${i}] }`).join('\n')}
roles:
  clerk:
    grants:
      - { on: person, columns: [id, name, email, born, tags, extra, fingerprint, city_id] }
${grantsText(['city', 'visit'])}
      - { on: diary, columns: [person_id, query, written] }
  chief_hidden:
    grants:
${grantsText(['salary_hidden', 'letters_hidden'])}
      - { on: person, columns: "*", unmask: [pii, fingerprint_hidden] }
      - { on: city, columns: "*" }
${['id', 'name', 'founded']
  .concat('id, name')
  .map((columns, i) => `  r${i}:\n    grants: [{ on: city, columns: [${columns}] }]`)
  .join('\n')}
masks: { pii: redact }
limits: { query: 100000, catalog: 100000 }
`,
);

const ROLES: Readonly<Record<string, readonly string[]>> = {
  clerk: ['clerk'],
  clerk2: ['clerk'],
  chief: ['chief_hidden'],
  nobody: [],
  u0: ['r0'],
  u1: ['r1'],
  u2: ['r2'],
  u3: ['r3'],
};

export interface Model {
  /** YAML. */
  readonly manifest: string;
  readonly policy: string;
  /** By user. */
  readonly roles: Readonly<Record<string, readonly string[]>>;
}

/** A service, and callers who may see different parts of one model. */
export interface Base {
  readonly service: Service;
  /** Everything appended since the last call. */
  takeAudit(): readonly AuditEntry[];
  token(user: string): Promise<string>;
  close(): Promise<void>;
}

/** That service on the wire with catalogs. */
export interface World extends Base {
  readonly port: number;
  readonly catalogs: Catalogs;
  /** Clients are ended with the world. */
  connect(user: string): Promise<pg.Client>;
}

/** The image is the same for everybody, so one is made for all tests. */
export const IMAGE_DIR = join(tmpdir(), 'osl-test-catalog');

/** The service of a model; of the one above unless told. */
export async function openBase(
  model: Model = { manifest: MANIFEST, policy: POLICY, roles: ROLES },
): Promise<Base> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-catalog-'));
  const manifestFile = join(dir, 'manifest.yaml');
  const policyFile = join(dir, 'policy.yaml');
  writeFileSync(manifestFile, model.manifest);
  writeFileSync(policyFile, model.policy);
  const silent = { info: () => undefined, warn: () => undefined, error: console.error };
  const settings = settingsFrom({}, dir, { manifestFile, policyFile, dataDir: join(dir, 'data') });
  await emptyDatabases(settings.dataDir, model.manifest);
  const open = await openService(settings, silent);
  const entries: AuditEntry[] = [];
  return {
    service: sealing(open.service, {
      audit: watchedLog(sealedParts(open.service).audit, (entry) => entries.push(entry)),
    }),
    takeAudit: () => entries.splice(0),
    token: (user) =>
      mintToken(
        { tenant: 'test', chain: [`user:${user}`], aclRoles: model.roles[user] ?? [] },
        { algorithm: 'HS256', secret: open.keys.signing },
      ),
    async close() {
      await open.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** `close` leaves `base` open. */
export async function openWorld(base: Base, options: Partial<CatalogOptions> = {}): Promise<World> {
  const catalogs = new Catalogs({ dir: IMAGE_DIR, ...options });
  await catalogs.warm();
  const frontend = createPgFrontend(base.service, { catalogs });
  const { port } = await frontend.listen(0, '127.0.0.1');
  const clients: pg.Client[] = [];
  return {
    ...base,
    port,
    catalogs,
    async connect(user) {
      const password = await base.token(user);
      const client = await connectPg({ port, user: `user:${user}`, password });
      clients.push(client);
      return client;
    },
    async close() {
      await Promise.all(clients.map((c) => c.end()));
      await frontend.stop();
      await catalogs.close();
    },
  };
}

/** What one statement came to: rows as text, or the error with all that it says. */
export async function outcome(client: pg.Client, text: string, values?: readonly unknown[]): Promise<string> {
  try {
    const { rows, fields } = await client.query({
      text,
      rowMode: 'array',
      ...(values === undefined ? {} : { values: [...values] }),
      types: { getTypeParser: () => (value: unknown) => value },
    });
    return JSON.stringify([fields.map((f) => [f.name, f.dataTypeID]), rows]);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    const { code, message, detail, hint, position } = error;
    return JSON.stringify({ code, message, detail, hint, position });
  }
}
