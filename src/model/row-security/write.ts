import { sql, sqlText } from '../../base/sql.js';
import type { SystemEngine } from '../../engine/index.js';
import type { RowSecurity } from './design.js';
import { COMMENT, ROWS_POLICY, rowSecurityScript } from './script.js';
import { SCHEMA } from './sql.js';

/** A role lacks a privilege to write; the message names both. */
export class CannotWrite extends Error {}

/**
 * Installs `design` in one transaction, with the rights of the tables' owner. What was installed before is replaced.
 *
 * @throws CannotWrite; UpstreamFailure, and nothing is changed then
 */
export async function writeRowSecurity(
  door: SystemEngine,
  design: RowSecurity,
  key: Uint8Array,
): Promise<void> {
  await mayWrite(door, design);
  await door.transaction(async (tx) => {
    for (const statement of rowSecurityScript(design, key)) await tx.script(statement);
  });
}

async function mayWrite(door: SystemEngine, { tables, role }: RowSecurity): Promise<void> {
  const [row] = await door.query(
    sql`select pg_catalog.has_database_privilege(current_database(), 'CREATE') as creates,
            array(select n.nspname || '.' || c.relname
                    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                   where n.nspname || '.' || c.relname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
                     and not pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE')
                   order by 1)::text[] as others,
            array(select distinct r::pg_catalog.regrole::text from pg_catalog.pg_policy p, unnest(p.polroles) r
                   where p.polname = ${sqlText(ROWS_POLICY)} and r::pg_catalog.regrole::text <> pg_catalog.quote_ident($2)
                     and pg_catalog.obj_description(p.oid, 'pg_policy') like ${sqlText(`${COMMENT} %`)})::text[] as guarded`,
    [[...tables.keys()], role],
  );
  const [guarded] = Array.isArray(row?.['guarded']) ? row['guarded'].map(String) : [];
  if (guarded !== undefined) {
    throw new CannotWrite(
      `row security of another gateway, for role ${guarded}, stands in this database; \`osl row-security --drop\` ends it`,
    );
  }
  const others = Array.isArray(row?.['others']) ? row['others'].map(String) : [];
  const who = `role "${door.reader}"`;
  if (others.length > 0) throw new CannotWrite(`${who} does not own ${others.slice(0, 5).join(', ')}`);
  if (row?.['creates'] !== true) throw new CannotWrite(`${who} may not make the schema ${SCHEMA}`);
}
