import type { Column, Relation } from 'osl-compiler';
import { frozenMap } from '../frozen-map.js';
import type { Bridge, Relationship } from '../manifest.js';

/**
 * The relations with every joinable column's key domain. Columns that links connect share a domain, named
 * after the key that they lead to (`package.path`); a sealed key without links has its own; others have none.
 */
export function withKeyDomains(
  relations: ReadonlyMap<string, Relation>,
  relationships: Iterable<Relationship>,
  bridges: Iterable<Bridge>,
): ReadonlyMap<string, Relation> {
  const target = new Map<string, string>();
  for (const { from, to } of relationships) {
    for (const [i, column] of from.columns.entries())
      link(target, `${from.entity}.${column}`, `${to.entity}.${to.columns[i]}`);
  }
  for (const b of bridges) {
    for (const side of [b.left, b.right]) {
      for (const [i, column] of side.columns.entries()) {
        link(target, `${b.name}.${column}`, `${side.entity}.${side.keys[i]}`);
      }
    }
  }
  return frozenMap([...relations].map(([name, r]): [string, Relation] => [name, withDomains(r, target)]));
}

/** Joins the domain of `from` to that of `to`; links that form a circle change nothing. */
function link(target: Map<string, string>, from: string, to: string): void {
  const a = root(target, from);
  const b = root(target, to);
  if (a !== b) target.set(a, b);
}

function root(target: ReadonlyMap<string, string>, column: string): string {
  let at = column;
  for (let next = target.get(at); next !== undefined; next = target.get(at)) at = next;
  return at;
}

function withDomains(relation: Relation, target: ReadonlyMap<string, string>): Relation {
  const sealed = new Set(relation.sealedKeys);
  const columns = relation.columns.map((c): Column => {
    return sealed.has(c.name)
      ? Object.freeze({ ...c, keyDomain: root(target, `${relation.name}.${c.name}`) })
      : c;
  });
  return Object.freeze({ ...relation, columns: Object.freeze(columns) });
}
