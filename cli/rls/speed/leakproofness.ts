import { sql } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import type { Leakproofness } from './reasons.js';

/** Says of operators and functions of these names which are leakproof, by `pg_proc.proleakproof`. */
export async function leakproofnessOf(
  system: SystemEngine,
  names: ReadonlySet<string>,
): Promise<readonly Leakproofness[]> {
  const rows = await system.query(
    sql`select o.oprname::text as name, pg_catalog.format_type(o.oprleft, null) as type, p.proname::text as procedure,
               p.proleakproof as leakproof
          from pg_catalog.pg_operator o join pg_catalog.pg_proc p on p.oid = o.oprcode where o.oprname = any ($1)
        union all
        select p.proname::text, '', p.proname::text, p.proleakproof
          from pg_catalog.pg_proc p where p.proname = any ($1)`,
    [[...names]],
  );
  return rows.map((row) => ({
    name: String(row['name']),
    type: String(row['type']),
    procedure: String(row['procedure']),
    leakproof: row['leakproof'] === true,
  }));
}
