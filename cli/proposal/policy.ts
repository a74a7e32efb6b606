import { randomBytes } from 'node:crypto';
import { identifier, type Relation } from 'osl-compiler';
import type { PolicyDocument } from '../../policy/document.js';
import { sql, sqlJoin, sqlName, sqlTable, sqlText } from '../../src/base/sql.js';
import type { SystemEngine } from '../../src/engine/index.js';
import type { AdoptionCandidate } from '../../src/model/discovery/index.js';
import { type Manifest, tableName } from '../../src/model/manifest/index.js';
import { makeScramVerifier } from '../../wire/index.js';
import { KEY_LABEL, LABEL } from './manifest.js';

export interface FirstRole {
  readonly tenant: string;
  readonly role: string;
  readonly subject: string;
  readonly rows: RowRule | null;
}

export interface RowRule {
  /** Name of the tenant column in the database. */
  readonly column: string;
  readonly value: string;
  /** Target of foreign keys on the column, as `schema.table` and column; null unless all refer to one table. */
  readonly refers: { readonly table: string; readonly column: string } | null;
  /** Treatment of tables that lack the column: all rows are shown, or the table is not granted. */
  readonly others: 'whole' | 'hidden';
}

/**
 * Drafts a policy that grants `role` the columns of `manifest` one by one, so that new columns are not granted to
 * anyone.
 */
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

/**
 * Row filter such as `org_id = attribute('tenant')`, or the same comparison with the key that the tenant column refers
 * to; null if the relation has neither column.
 */
function filterOf(relation: Relation, { column, refers }: RowRule): string | null {
  const own = refers?.table === tableName(relation) ? refers.column : null;
  const found = relation.columns.find((c) => c.physical === column || c.physical === own);
  return found === undefined ? null : `${identifier(found.name)} = attribute('${ATTRIBUTE}')`;
}

/** A database role that may log in and read certain tables, and nothing else. */
export interface ReaderRole {
  /** Connection URL of the role. It contains the password, which is not stored anywhere. */
  readonly url: string;
  drop(): Promise<void>;
}

/**
 * Creates the role `name` with a new password and lets it read `tables`, in one transaction. The server receives only
 * the verifier of the password.
 *
 * @throws UpstreamFailure, for example if the role exists
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
