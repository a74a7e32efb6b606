import { comparedColumns, type PolicySnapshot } from '../../../policy/index.js';
import { sql, sqlName, sqlTable } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import type { Manifest } from '../../../src/model/manifest/index.js';
import type { CallerAttribute } from '../import/attributes.js';
import type { ComparedCaller } from './callers.js';

/**
 * Makes callers of each role from values that the database has: those of the columns that filters compare with an
 * attribute. The first caller of a role has none of them, and one has values that no row has.
 *
 * @param each callers of a role with values
 */
export async function sampledCallers(
  system: SystemEngine,
  { manifest, snapshot }: { readonly manifest: Manifest; readonly snapshot: PolicySnapshot },
  attributes: readonly CallerAttribute[],
  roles: readonly string[],
  each: number,
): Promise<readonly ComparedCaller[]> {
  const compared = comparedColumns(snapshot);
  const samples = new Map<string, readonly string[]>();
  for (const attribute of attributes) {
    const values = new Set<string>();
    for (const { relation, column } of compared.get(attribute.name) ?? []) {
      const found = manifest.catalog.relations.get(relation);
      const physical = found?.columns.find((c) => c.physical === column || c.name === column)?.physical;
      if (found === undefined || physical === undefined) continue;
      const name = sqlName(physical);
      const rows = await system.query(
        sql`select distinct ${name}::text as value from ${sqlTable(found)} where ${name} is not null order by 1 limit $1`,
        [each],
      );
      for (const row of rows) values.add(String(row['value']));
    }
    samples.set(attribute.name, [...values]);
  }
  return roles.flatMap((role) => [
    { name: `${role} without values`, role, settings: {}, claims: {} },
    ...Array.from({ length: each }, (_, i) => callerWith(role, i, attributes, samples)),
  ]);
}

function callerWith(
  role: string,
  index: number,
  attributes: readonly CallerAttribute[],
  samples: ReadonlyMap<string, readonly string[]>,
): ComparedCaller {
  const settings: Record<string, string> = {};
  const claims: Record<string, unknown> = {};
  for (const { name, source, list } of attributes) {
    const values = samples.get(name) ?? [];
    const value = values[index % Math.max(1, values.length)];
    if (value === undefined) continue;
    if (source.kind === 'setting') settings[source.name] = value;
    else if (source.kind === 'claim') place(claims, source.path, list ? [value] : value);
  }
  return { name: `${role} ${index + 1}`, role, settings, claims };
}

function place(claims: Record<string, unknown>, path: readonly string[], value: unknown): void {
  const [first = '', ...rest] = path;
  if (rest.length === 0) {
    claims[first] = value;
    return;
  }
  const inner: Record<string, unknown> = { ...Object(claims[first] ?? {}) };
  place(inner, rest, value);
  claims[first] = inner;
}
