import type { Node } from '@pgsql/types';
import type { EntityDraft } from './draft.js';
import { shown } from './shown.js';
import type { Place } from './source.js';
import { hasAggregate, NoFit, nameOf } from './sql/expression.js';
import { identifier } from './sql/identifier.js';
import { print } from './sql/print.js';

/** How names in an expression over one entity's rows are found. */
export interface ColumnScope {
  readonly entity: EntityDraft;
  /** Whether a plain name is a field of the source first, or a column of its table. */
  readonly first: 'field' | 'physical';
  /** Where it is written, and what for: a column may have to be exposed. */
  readonly place: Place;
  readonly what: string;
}

/** The SQL that stands for `name` in a metric of the entity. @throws NoFit */
export function columnText(name: string, scope: ColumnScope, within: readonly string[] = []): string {
  const { entity, first, place, what } = scope;
  const physical = entity.physical(name);
  if (first === 'physical' && physical !== null) return identifier(physical.name);
  const column = entity.column(name);
  if (column !== null && first === 'field') return identifier(column.name);
  const computed = first === 'field' ? entity.computed.get(name.toLowerCase()) : undefined;
  if (computed !== undefined) return writtenOut(name, computed, scope, within);
  return identifier(entity.need(name, place, what).name);
}

/** The expression of a computed column of the entity. @throws NoFit */
export function computedText(node: Node, scope: ColumnScope): string {
  if (hasAggregate(node)) throw new NoFit('it holds an aggregate');
  return print(node, { column: (parts) => columnText(parts.at(-1) ?? '', scope) });
}

/** A computed field, written out: its own names are those of the table. */
function writtenOut(name: string, node: Node, scope: ColumnScope, within: readonly string[]): string {
  if (within.includes(name)) throw new NoFit(`\`${shown(name)}\` is made of itself`);
  if (within.length === 20) throw new NoFit(`\`${shown(name)}\` is made of fields of fields of fields`);
  if (hasAggregate(node)) throw new NoFit(`\`${shown(name)}\` holds an aggregate`);
  const text = print(node, {
    column: (parts) => {
      const last = parts.at(-1) ?? '';
      // A field of the name of its own column reads the column.
      if (last.toLowerCase() === name.toLowerCase())
        return identifier(scope.entity.need(last, scope.place, scope.what).name);
      return columnText(last, scope, [...within, name]);
    },
  });
  return nameOf(node) === null ? `(${text})` : text;
}
