import { declaredColumn, spelledColumn, type TypeName, typeOfOid } from 'osl-compiler';

/** Relations of one database, as its catalog declares them. No row is read. */
export interface UpstreamSchema {
  /** Ordered by schema, then by name. */
  readonly relations: readonly UpstreamRelation[];
  /** True if the database has more. */
  readonly truncated: boolean;
}

export type RelationKind = 'table' | 'view' | 'materialized_view' | 'foreign_table';

export interface UpstreamRelation {
  readonly schema: string;
  readonly name: string;
  readonly kind: RelationKind;
  readonly comment: string | null;
  /** Query of a view, with qualified names; otherwise null. */
  readonly definition: string | null;
  /** True if other tables inherit from it: their rows are read through it, and its keys do not hold for them. */
  readonly inherited: boolean;
  /** Planner's estimate; null if it was never analyzed. */
  readonly rowEstimate: number | null;
  readonly columns: readonly UpstreamColumn[];
  readonly primaryKey: readonly string[] | null;
  /** Columns of unique constraints and of complete unique indexes, which hold for every row. */
  readonly uniqueKeys: readonly (readonly string[])[];
  readonly foreignKeys: readonly ForeignKey[];
}

export interface UpstreamColumn {
  readonly name: string;
  /** As Postgres writes it, e.g. `character varying(20)`. */
  readonly type: string;
  /** OID of the type below all domains. */
  readonly typeOid: number;
  /** `atttypmod`, or that of the domain; -1 if there is none. */
  readonly modifier: number;
  /** That type as `stored` of a manifest names it; null if its cast to text is a user-defined function. */
  readonly stored: string | null;
  /** Labels of an enum, in order; otherwise null. */
  readonly labels: readonly string[] | null;
  readonly nullable: boolean;
  /** True if the database supplies the value: a default, an identity or a generated column. */
  readonly filled: boolean;
  /** True if the governed role may read it. */
  readonly readable: boolean;
  readonly comment: string | null;
}

/** `columns[i]` refers to `target.columns[i]`. */
export interface ForeignKey {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly string[];
  readonly target: { readonly schema: string; readonly name: string; readonly columns: readonly string[] };
}

/** Types that are read as another type of the model. */
const AS_ANOTHER: ReadonlyMap<number, TypeName> = new Map([
  [19, 'text'], // name
  [1043, 'text'], // varchar
  [1003, 'text[]'],
  [1015, 'text[]'],
  [1560, 'varbit'], // bit
  [1561, 'varbit[]'],
]);

export interface ModelledType {
  readonly type: TypeName;
  /** `type` as a manifest spells it for this column: `varchar(20)`, `numeric(12,2)`. */
  readonly spelled: string;
  /** Database type, if the model has none for it and it is read as text; otherwise null. */
  readonly stored: string | null;
  /** Labels of an enum that is identified by name; otherwise null. */
  readonly labels: readonly string[] | null;
}

/** Manifest declaration of an upstream column's type, or null if its values cannot even be read as text. */
export function modelType({ typeOid, modifier, stored, labels }: UpstreamColumn): ModelledType | null {
  const type = AS_ANOTHER.get(typeOid) ?? typeOfOid(typeOid);
  if (type !== null && declaredColumn(type) !== null)
    return { type, spelled: spelledColumn(type, typeOid, modifier), stored: null, labels: null };
  if (stored === null) return null;
  const text = stored.endsWith('[]') ? 'text[]' : 'text';
  return { type: text, spelled: text, stored, labels: stored.startsWith('enum ') ? labels : null };
}
