import type { TypeName } from 'osl-compiler';

/** The model's types for the portable ones of the format. */
export const DATATYPES: ReadonlyMap<string, TypeName> = new Map<string, TypeName>([
  ['String', 'text'],
  ['Integer', 'int8'],
  ['Decimal', 'numeric'],
  ['Float', 'float8'],
  ['Boolean', 'bool'],
  ['Date', 'date'],
  ['Time', 'time'],
  ['DateTime', 'timestamp'],
  ['DateTimeTz', 'timestamptz'],
]);

const PORTABLE: ReadonlyMap<string, string> = new Map([
  ...[...DATATYPES].map(([word, type]): [string, string] => [type, word]),
  ['int2', 'Integer'],
  ['int4', 'Integer'],
  ['float4', 'Float'],
]);

/** The portable word for a type of the model; `Opaque` for one that has none. */
export function datatypeOf(type: TypeName): string {
  return PORTABLE.get(type) ?? 'Opaque';
}
