import { randomBytes } from 'node:crypto';
import { identifier, type Relation } from 'osl-compiler';
import type { PolicyDocument } from '../../policy/document.js';
import { sql, sqlJoin, sqlName, sqlTable, sqlText } from '../../src/base/sql.js';
import type { SystemEngine } from '../../src/engine/index.js';
import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { type Manifest, tableName } from '../../src/model/manifest/index.js';
import { makeScramVerifier } from '../../wire/index.js';
import { KEY_LABEL, LABEL } from './manifest.js';

/** Who may ask at first: one subject with one role. */
export interface FirstRole {
  readonly tenant: string;
  readonly role: string;
  readonly subject: string;
  /** The role sees only rows of this tenant; null: all rows. */
  readonly rows: RowRule | null;
}

export interface RowRule {
  /** Upstream name of the column that says whose a row is. */
  readonly column: string;
  readonly value: string;
  /** What the column refers to, `schema.table` and its column; null where no foreign key says. */
  readonly refers: { readonly table: string; readonly column: string } | null;
  /** True if tables without the column are shown, whole. */
  readonly others: 'whole' | 'hidden';
}

/** The policy that grants `role` what `manifest` has, column by column: what is added later is granted to nobody. */
export function draftPolicy(manifest: Manifest, { tenant, role, subject, rows }: FirstRole): PolicyDocument {
  const relations = [...manifest.catalog.relations.values()];
  const grants = relations.flatMap((relation) => {
    const columns = relation.columns.map((c) => c.name);
    const filter = rows === null ? null : filterOf(relation, rows);
    if (rows !== null && filter === null && rows.others === 'hidden') return [];
    return [{ on: relation.name, columns, ...(filter === null ? {} : { rows: filter }) }];
  });
  const attributes = rows === null ? {} : { attributes: { [ATTRIBUTE]: rows.value } };
  const description = 'Read what the manifest has; personal data are masked.';
  return {
    version: 1,
    tenant,
    subjects: { [subject]: { ceiling: [role], ...attributes } },
    roles: { [role]: { description, grants } },
    masks: { [LABEL]: 'redact', [KEY_LABEL]: 'hash' },
  };
}

const ATTRIBUTE = 'tenant';

/** `org_id = attribute('tenant')`, or the key of what that refers to; null where the relation has neither. */
function filterOf(relation: Relation, { column, refers }: RowRule): string | null {
  const own = refers?.table === tableName(relation) ? refers.column : null;
  const found = relation.columns.find((c) => c.physical === column || c.physical === own);
  return found === undefined ? null : `${identifier(found.name)} = attribute('${ATTRIBUTE}')`;
}

/** A role that may log in and read some tables, and nothing else. */
export interface ReaderRole {
  /** Of the same server and database. Holds the password, which is stored nowhere. */
  readonly url: string;
  /** Takes it away again. */
  drop(): Promise<void>;
}

/**
 * Makes the role `name` with a password of its own, and lets it read `tables`: all of it, or none. The password never
 * reaches the server, which gets its verifier.
 *
 * @throws UpstreamFailure, where the role exists already for example
 */
export async function makeReader(
  system: SystemEngine,
  name: string,
  tables: readonly AdoptionCandidate[],
  url: string,
): Promise<ReaderRole> {
  const password = randomBytes(24).toString('base64url');
  const role = sqlName(name);
  const schemas = [...new Set(tables.map((t) => t.schema))].map(sqlName);
  const relations = tables.map(sqlTable);
  const verifier = await makeScramVerifier(password);
  await system.transaction((tx) =>
    tx.script(
      sqlJoin(
        [
          sql`CREATE ROLE ${role} LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS PASSWORD ${sqlText(verifier)}`,
          ...(schemas.length === 0 ? [] : [sql`GRANT USAGE ON SCHEMA ${sqlJoin(schemas)} TO ${role}`]),
          ...(relations.length === 0 ? [] : [sql`GRANT SELECT ON ${sqlJoin(relations)} TO ${role}`]),
        ],
        sql`; `,
      ),
    ),
  );
  const own = new URL(url);
  own.username = encodeURIComponent(name);
  own.password = password;
  return {
    url: own.href,
    drop: () => system.script(sql`DROP OWNED BY ${role}; DROP ROLE ${role}`),
  };
}
