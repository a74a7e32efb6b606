import type { Relation, TypeName } from 'osl-compiler';
import { type Sql, sql, sqlJoin, sqlName, sqlTable, sqlType } from '../../base/sql.js';
import type { SystemQueries } from '../../engine/index.js';
import type {
  DeclaredFacetVersion,
  DeclaredTableColumn,
  Facet,
  Manifest,
} from '../../model/manifest/index.js';
import { tableName } from '../../model/manifest/index.js';
import { valueIn } from './dictionary.js';
import type { DeclaredValue } from './matcher.js';

/** A FROM clause that leads from keys of the facet's entity to rows of one table. */
interface KeyPath {
  readonly table: string;
  /** The rows have the alias `n`. */
  readonly from: Sql;
  /** Column with the key. */
  readonly key: Sql;
}

/**
 * Labelled values in the rows of each key: the facet's own rows, the entity's, and those of the entities that a
 * declared link leads to, including the bridge. Other rows have no influence, so nobody can learn from a redaction
 * which values they contain.
 */
export async function readKeyDictionaries(
  system: SystemQueries,
  manifest: Manifest,
  facet: Facet,
  version: DeclaredFacetVersion,
  keys: readonly string[],
): Promise<ReadonlyMap<string, readonly DeclaredValue[]>> {
  const labels = new Set(version.redact);
  const found = new Map<string, DeclaredValue[]>(keys.map((key) => [key, []]));
  const tables = manifest.connectors.get(facet.connector)?.tables ?? new Map<string, never>();
  for (const reach of reachesOf(manifest, facet)) {
    for (const column of tables.get(reach.table)?.columns.values() ?? []) {
      if (column.sensitivity === null || !labels.has(column.sensitivity)) continue;
      const statement = valuesSql(reach, column, facet.entityKey.type);
      if (statement === null) continue;
      for (const row of await system.query(statement, [keys]))
        found.get(String(row['k']))?.push({ value: String(row['v']), label: column.sensitivity });
    }
  }
  return found;
}

function valuesSql({ from, key }: KeyPath, column: DeclaredTableColumn, keyType: TypeName): Sql | null {
  const found = valueIn(sql`n.${sqlName(column.name)}`, column.type);
  if (found === null) return null;
  const { value, lateral } = found;
  const keys = sql`$1::pg_catalog.text[]::${sqlType(keyType)}[]`;
  return sql`select distinct ${key}::pg_catalog.text as k, ${value} as v from ${from}${lateral}
    where ${key} = any (${keys}) and ${value} is not null`;
}

function reachesOf(manifest: Manifest, facet: Facet): readonly KeyPath[] {
  const { catalog } = manifest;
  const entity = catalog.relations.get(facet.entity);
  const store = catalog.facets.get(facet.legOf ?? facet.name);
  const own = tableName(facet);
  const source: KeyPath = {
    table: own,
    from: sql`${sqlTable(facet)} as n`,
    key: sql`n.${sqlName(facet.entityKey.physical)}`,
  };
  // Rows of another database cannot be joined.
  if (entity === undefined || store === undefined || entity.connector !== facet.connector) return [source];
  const e = tableOf(entity, E);
  const key = sql`e.${physical(entity, store.keyOfEntity)}`;
  const reaches: KeyPath[] = [
    source,
    { table: nameOf(entity), from: tableOf(entity, N), key: sql`n.${physical(entity, store.keyOfEntity)}` },
  ];
  for (const edge of catalog.edges) {
    const ways = [
      { here: edge.from, near: edge.fromColumns, there: edge.to, far: edge.toColumns, turned: false },
      { here: edge.to, near: edge.toColumns, there: edge.from, far: edge.fromColumns, turned: true },
    ].filter((w) => w.here === facet.entity);
    for (const { near, there, far, turned } of ways) {
      const neighbour = catalog.relations.get(there);
      const bridge = edge.bridge === null ? null : catalog.relations.get(edge.bridge.name);
      if (neighbour === undefined || neighbour.connector !== facet.connector) continue;
      const equal = (
        a: Sql,
        r: Relation,
        as: readonly string[],
        b: Sql,
        s: Relation,
        bs: readonly string[],
      ) =>
        sqlJoin(
          as.map((c, i) => sql`${a}.${physical(r, c)} = ${b}.${physical(s, bs[i] ?? '')}`),
          AND,
        );
      if (edge.bridge === null || bridge === null || bridge === undefined) {
        const on = equal(E, entity, near, N, neighbour, far);
        reaches.push({
          table: nameOf(neighbour),
          from: sql`${e} join ${tableOf(neighbour, N)} on ${on}`,
          key,
        });
        continue;
      }
      const [into, outOf] = turned
        ? [edge.bridge.toColumns, edge.bridge.fromColumns]
        : [edge.bridge.fromColumns, edge.bridge.toColumns];
      reaches.push(
        {
          table: nameOf(bridge),
          from: sql`${e} join ${tableOf(bridge, N)} on ${equal(E, entity, near, N, bridge, into)}`,
          key,
        },
        {
          table: nameOf(neighbour),
          from: sql`${e} join ${tableOf(bridge, B)} on ${equal(E, entity, near, B, bridge, into)} join ${tableOf(neighbour, N)} on ${equal(B, bridge, outOf, N, neighbour, far)}`,
          key,
        },
      );
    }
  }
  return reaches;
}

function nameOf(relation: Relation): string {
  return tableName(relation);
}

function tableOf(relation: Relation, alias: Sql): Sql {
  return sql`${sqlTable(relation)} as ${alias}`;
}

function physical(relation: Relation, name: string): Sql {
  return sqlName(relation.columns.find((c) => c.name === name)?.physical ?? name);
}

/** Aliases of the entity, of a bridge, and of the rows that are read. */
const [E, B, N] = [sql`e`, sql`b`, sql`n`];
const AND = sql` and `;
