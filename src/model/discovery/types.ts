import { declaredColumn, spelledColumn, type TypeName, typeOfOid } from 'osl-compiler';
import type { UpstreamColumn } from './upstream.js';

/** Types whose values are values of a type of the model's. */
const AS_ANOTHER: ReadonlyMap<number, TypeName> = new Map([
  [19, 'text'], // name
  [1043, 'text'], // varchar
  [1003, 'text[]'],
  [1015, 'text[]'],
  [1560, 'varbit'], // bit
  [1561, 'varbit[]'],
]);

/** What a manifest declares of a column's type. */
export interface ModelledType {
  readonly type: TypeName;
  /** `type` as a manifest spells it for this column: `varchar(20)`, `numeric(12,2)`. */
  readonly spelled: string;
  /** The type of the database, where it is none of the model's and is read as text; else null. */
  readonly stored: string | null;
  /** Of an enum that is known by its name, its labels; else null. */
  readonly labels: readonly string[] | null;
}

/** What a manifest says of an upstream column's type, or null where its values cannot even be read as text. */
export function modelType({ typeOid, modifier, stored, labels }: UpstreamColumn): ModelledType | null {
  const type = AS_ANOTHER.get(typeOid) ?? typeOfOid(typeOid);
  if (type !== null && declaredColumn(type) !== null)
    return { type, spelled: spelledColumn(type, typeOid, modifier), stored: null, labels: null };
  if (stored === null) return null;
  const text = stored.endsWith('[]') ? 'text[]' : 'text';
  return { type: text, spelled: text, stored, labels: stored.startsWith('enum ') ? labels : null };
}
