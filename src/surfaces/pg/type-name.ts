import { declaredOid, type parse } from 'osl-compiler';
import { error } from '../../../wire/index.js';

type Node = ReturnType<typeof parse>['node'];
export type TypeNode = NonNullable<Extract<Node, { TypeCast: unknown }>['TypeCast']['typeName']>;

/** The OID of a type that is declared by name; 0 leaves the choice to the question. @throws WireError 0A000, 42704 */
export function declaredTypeOf(node: Node): number {
  if (!('TypeName' in node)) throw error('0A000', 'a type is a name');
  return oidOfName(node.TypeName);
}

/** @throws WireError 0A000, 42704 */
export function oidOfName({ names = [], arrayBounds = [], setof, pct_type }: TypeNode): number {
  if (setof === true || pct_type === true) throw error('0A000', 'a type is declared by its name alone');
  const written = names.map((n) => ('String' in n ? (n.String.sval ?? '') : ''));
  const own = written.length === 2 && written[0] === 'pg_catalog' ? written.slice(1) : written;
  const [name = ''] = own;
  const oid = own.length === 1 ? declaredOid(name, arrayBounds.length > 0) : null;
  if (oid === null) throw error('42704', `type "${written.join('.')}" does not exist`);
  return oid;
}
