import type { AdoptionCandidate } from '../../../src/model/discovery/index.js';
import type { CheckedDatabase } from '../checked-database.js';
import { simpleView } from './simple-view.js';
import { Untranslatable } from './untranslatable.js';

/** The key of its table, as a view over one table shows it; null if it does not, or is another kind of view. */
export function passedKey(
  db: CheckedDatabase,
  view: AdoptionCandidate,
  tables: readonly AdoptionCandidate[],
): readonly string[] | null {
  const relation = db.relationNamed({ schema: view.schema, name: view.table });
  if (relation === null || relation.view === null) return null;
  try {
    const { base, columns } = simpleView(db, relation);
    const table = tables.find((one) => one.schema === base.schema && one.table === base.name);
    const key = (table?.key ?? []).map((of) =>
      columns.find((column) => column.kind === 'plain' && column.of === of),
    );
    const names = key.flatMap((column) => column?.name ?? []);
    return names.length > 0 && names.length === key.length ? names : null;
  } catch (error) {
    if (error instanceof Untranslatable) return null;
    throw error;
  }
}
