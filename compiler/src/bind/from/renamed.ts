import type { Alias } from '@pgsql/types';
import { type Location, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BoundColumn, type ScopeColumn, type ScopeItem, TWICE } from '../scope.js';

/** Result columns by name. A name that occurs twice cannot be referred to; `*` still has both. */
function toColumns(columns: readonly BoundColumn[]): ReadonlyMap<string, ScopeColumn> {
  const counts = new Map<string, number>();
  for (const c of columns) counts.set(c.name, (counts.get(c.name) ?? 0) + 1);
  return new Map(
    columns.map((c, i) => [
      counts.get(c.name) === 1 ? c.name : `${c.name}${TWICE}${i}`,
      { name: `c${i + 1}`, type: c.type, sealed: c.sealed, denied: false, starred: true },
    ]),
  );
}

/** The columns of a derived or common table, under the names that its alias lists. */
export function renamedDerived(
  columns: readonly BoundColumn[],
  alias: Alias | undefined,
  location: Location,
  ctx: BindContext,
) {
  const names = (alias?.colnames ?? []).map(stringOf);
  if (names.length > columns.length) {
    const detail = `the alias lists ${names.length} columns of ${columns.length}`;
    throw ctx.mismatch(detail, location);
  }
  return toColumns(columns.map((c, i) => ({ ...c, name: names[i] ?? c.name })));
}

/**
 * The columns of an entity under the names that its alias lists, by position among those that `*` has for this caller:
 * who counts columns counts visible ones. A table of raw SQL has positions of its own, some of them hidden.
 */
export function renamedEntity(
  columns: ReadonlyMap<string, ScopeColumn>,
  alias: Alias | undefined,
  location: Location,
  ctx: BindContext,
): Pick<ScopeItem, 'columns' | 'declared'> {
  const names = alias?.colnames?.map(stringOf);
  if (names === undefined) return { columns };
  if (ctx.world === 'physical')
    throw ctx.unsupported('a list of column aliases on a table', location, 'use AS in a derived table');
  const starred = [...columns].filter(([, c]) => c.starred);
  if (names.length > starred.length)
    throw ctx.mismatch(`the alias lists ${names.length} columns of ${starred.length}`, location);
  const shown = starred.map(([name, column], i): [string, ScopeColumn] => [names[i] ?? name, column]);
  const taken = new Set(shown.map(([name]) => name));
  const rest = [...columns].filter(([name, c]) => !c.starred && !taken.has(name));
  const counts = new Map<string, number>();
  for (const [name] of shown) counts.set(name, (counts.get(name) ?? 0) + 1);
  const once = shown.map(([name, column], i): [string, ScopeColumn] => [
    counts.get(name) === 1 ? name : `${name}${TWICE}${i}`,
    column,
  ]);
  return { columns: new Map([...once, ...rest]), declared: columns };
}
