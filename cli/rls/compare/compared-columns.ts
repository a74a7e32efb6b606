import type { Column, Relation, TypeName } from 'osl-compiler';
import type { TableView } from '../import/view-plan.js';

/** By what the rows of an entity are compared with those of its table or view. */
export interface ComparedColumns {
  readonly entity: string;
  /** The table or view in the database. */
  readonly source: { readonly schema: string; readonly table: string };
  readonly columns: readonly { readonly name: string; readonly inDatabase: string }[];
  /** True for the key of the entity, false for other columns, of which several rows may have the same. */
  readonly isKey: boolean;
  /** True if the rows of `source` may depend on who reads it. */
  readonly isOfView: boolean;
}

/** Types whose text depends on no setting of a session. */
const PLAIN: ReadonlySet<TypeName> = new Set(['bool', 'int2', 'int4', 'int8', 'numeric', 'text', 'uuid']);

/**
 * The key of an entity, or else its columns without masks. Null if there is nothing to compare.
 *
 * @param view the view that the entity stands for, if it is an entity over the table of a view
 * @param granted the columns that the role may see
 */
export function comparedColumns(
  relation: Relation,
  view: TableView | null,
  granted: ReadonlySet<string>,
): ComparedColumns | null {
  const source = view === null ? relation : { schema: view.view.schema, table: view.view.name };
  const inDatabase = ({ physical }: Column): string | null => {
    if (view === null) return physical;
    const found = view.query.columns.find((column) => column.kind === 'plain' && column.of === physical);
    return found?.name ?? null;
  };
  const usable = relation.columns.flatMap((column) => {
    const there = granted.has(column.name) ? inDatabase(column) : null;
    return there === null ? [] : [{ column, name: column.name, inDatabase: there }];
  });
  const key = usable.filter(({ name }) => relation.primaryKey.includes(name));
  const isKey = key.length > 0 && key.length === relation.primaryKey.length;
  const others = usable.filter(({ column }) => column.sensitivity === null && PLAIN.has(column.type));
  const columns = (isKey ? key : others).map(({ name, inDatabase: there }) => ({ name, inDatabase: there }));
  return columns.length === 0
    ? null
    : { entity: relation.name, source, columns, isKey, isOfView: view !== null };
}
