import { identifier, type Relation } from 'osl-compiler';
import type { PolicyDocument } from '../../policy/document.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { tableName } from '../../src/model/manifest/index.js';
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
  /** Whether tables without the column are shown, whole. */
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
