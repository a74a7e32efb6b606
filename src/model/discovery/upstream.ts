import { declaredColumn, spelledColumn, type TypeName, typeOfOid } from 'osl-compiler';

/** The relations of one database as its own catalog declares them. Only declarations: no row is read. */
export interface UpstreamSchema {
  /** By schema, then by name. */
  readonly relations: readonly UpstreamRelation[];
  /** There are more than were read. */
  readonly truncated: boolean;
}

export type RelationKind = 'table' | 'view' | 'materialized_view' | 'foreign_table';

export interface UpstreamRelation {
  readonly schema: string;
  readonly name: string;
  readonly kind: RelationKind;
  readonly comment: string | null;
  /** The query of a view, all names with their schemas; else null. */
  readonly definition: string | null;
  /** Other tables inherit from it: their rows are read through it, and no key of it holds for them. */
  readonly inherited: boolean;
  /** Planner's estimate; null if it was never analyzed. */
  readonly rowEstimate: number | null;
  /** In their declared order. */
  readonly columns: readonly UpstreamColumn[];
  readonly primaryKey: readonly string[] | null;
  /** Columns of unique constraints and of whole unique indexes, which hold for every row. */
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
  /** That type as `stored` of a manifest names it; null where its text is made by a function that somebody wrote. */
  readonly stored: string | null;
  /** Labels of an enum, in their order; otherwise null. */
  readonly labels: readonly string[] | null;
  readonly nullable: boolean;
  /** The database gives it a value by itself: a default, an identity or a generated column. */
  readonly filled: boolean;
  /** The role that governed statements run as may read it. */
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

/** Types whose values are values of a type of the model's. */
const AS_ANOTHER: ReadonlyMap<number, TypeName> = new Map([
  [19, 'text'], // name
  [1043, 'text'], // varchar
  [1003, 'text[]'],
  [1015, 'text[]'],
  [1560, 'varbit'], // bit
  [1561, 'varbit[]'],
]);

/** Manifest declaration of a column's type. */
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
