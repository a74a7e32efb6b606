import { type TypeName, typeOfOid } from 'osl-compiler';

/** Types whose values are values of the model's `text`. */
const AS_TEXT: ReadonlyMap<number, TypeName> = new Map([
  [19, 'text'], // name
  [1043, 'text'], // varchar
  [1003, 'text[]'],
  [1015, 'text[]'],
]);

/** The model's type of an upstream column, or null where it has none: enums, ranges, geometry, … */
export function modelType(oid: number): TypeName | null {
  return AS_TEXT.get(oid) ?? typeOfOid(oid);
}
