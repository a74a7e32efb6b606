import { isPhysical, type TableDraft } from './draft.js';
import { legalName } from './names.js';
import { shown } from './source.js';
import { NoFit } from './sql/expression.js';

/**
 * The table that a name of one to three parts means: `table`, `schema.table`, `database.schema.table`. A database
 * becomes a connector of that name.
 *
 * @throws NoFit for more parts, for what cannot be a name, and for the schemas of the system
 */
export function tableNamed(parts: readonly string[], connector: string): TableDraft {
  const [table, schema = null, database] = [...parts].reverse();
  if (table === undefined || parts.length > 3)
    throw new NoFit(`\`${shown(parts.join('.'))}\` names no table`);
  for (const part of parts)
    if (!isPhysical(part)) throw new NoFit(`\`${shown(part)}\` cannot be part of a table's name`);
  if (schema !== null && (schema.startsWith('pg_') || schema === 'information_schema'))
    throw new NoFit(`\`${schema}\` is a system schema`);
  const owner = database === undefined ? connector : legalName(database);
  if (owner === null) throw new NoFit(`\`${shown(database ?? '')}\` cannot be the name of a connector`);
  return { connector: owner, schema, table };
}
