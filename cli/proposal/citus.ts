import { type CitusLayout, distributionColumns } from '../../src/model/discovery/index.js';

/** `Citus: 3 tables distributed by tenant_id; 1 reference table`. */
export function citusText(layout: CitusLayout): string {
  const columns = distributionColumns(layout).map(({ column, tables }) => {
    const groups = new Set(tables.map((name) => colocationOf(layout, name)));
    const apart = groups.size > 1 ? `, in ${groups.size} groups that are not co-located` : '';
    return `${plural(tables.length, 'table')} distributed by ${column}${apart}`;
  });
  const references = [...layout.values()].filter(({ kind }) => kind === 'reference').length;
  const copied = references === 0 ? [] : [plural(references, 'reference table')];
  return `Citus: ${[...columns, ...copied].join('; ') || 'no distributed table of the manifest'}`;
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`;

function colocationOf(layout: CitusLayout, name: string): number | null {
  const table = layout.get(name);
  return table?.kind === 'distributed' ? table.colocation : null;
}
