import type { SystemDoor } from '../engine/index.js';
import type { RowSecurity } from './design.js';
import { rowSecurityScript } from './script.js';
import { SCHEMA } from './sql.js';

/** Why the role of a connection cannot write; names what it would need. */
export class NotTheOwner extends Error {}

/**
 * Puts `design` into the database in one transaction, with the rights of whoever owns the tables; what stood before is
 * replaced whole.
 *
 * @throws NotTheOwner; UpstreamFailure, and nothing is changed then
 */
export async function writeRowSecurity(
  door: SystemDoor,
  design: RowSecurity,
  key: Uint8Array,
): Promise<void> {
  await mayWrite(door, design);
  await door.transaction(async (tx) => {
    for (const statement of rowSecurityScript(design, key)) await tx.script(statement);
  });
}

async function mayWrite(door: SystemDoor, { tables }: RowSecurity): Promise<void> {
  const [row] = await door.query(
    `select pg_catalog.has_database_privilege(current_database(), 'CREATE') as creates,
            array(select n.nspname || '.' || c.relname
                    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                   where n.nspname || '.' || c.relname = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
                     and not pg_catalog.pg_has_role(current_user, c.relowner, 'USAGE')
                   order by 1)::text[] as others`,
    [[...tables.keys()]],
  );
  const others = Array.isArray(row?.['others']) ? row['others'].map(String) : [];
  const who = `role "${door.reader}"`;
  if (others.length > 0) throw new NotTheOwner(`${who} does not own ${others.slice(0, 5).join(', ')}`);
  if (row?.['creates'] !== true) throw new NotTheOwner(`${who} may not make the schema ${SCHEMA}`);
}
