import { quoteIdentifier, type Relation } from 'osl-compiler';
import { tableSql } from '../../base/table-sql.js';
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
  /** `schema.table` of the rows. */
  readonly table: string;
  /** The rows are `n` in it. */
  readonly from: string;
  /** The column that holds the key. */
  readonly key: string;
}

/**
 * The labelled values that stand in the rows of each key: the facet's own rows, the entity's, and those of the entities
 * that a declared link leads to from there, with what is in the bridge. No other row of the tenant decides anything of
 * a text, so that nobody learns from a redaction which values other rows hold.
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
      const sql = valuesSql(reach, column, facet.entityKey.type);
      if (sql === null) continue;
      for (const row of await system.query(sql, [keys]))
        found.get(String(row['k']))?.push({ value: String(row['v']), label: column.sensitivity });
    }
  }
  return found;
}

function valuesSql({ from, key }: KeyPath, column: DeclaredTableColumn, keyType: string): string | null {
  const value = valueIn(`n.${quoteIdentifier(column.name)}`, column.type);
  if (value === null) return null;
  const keys = `$1::pg_catalog.text[]::${keyType}[]`;
  return (
    `select distinct ${key}::pg_catalog.text as k, ${value.sql} as v from ${from}${value.lateral}` +
    ` where ${key} = any (${keys}) and ${value.sql} is not null`
  );
}

function reachesOf(manifest: Manifest, facet: Facet): readonly KeyPath[] {
  const { catalog } = manifest;
  const entity = catalog.relations.get(facet.entity);
  const store = catalog.facets.get(facet.legOf ?? facet.name);
  const own = tableName(facet);
  const source: KeyPath = {
    table: own,
    from: `${tableSql(facet)} as n`,
    key: `n.${quoteIdentifier(facet.entityKey.physical)}`,
  };
  // Rows of another database can be joined to none of this one.
  if (entity === undefined || store === undefined || entity.connector !== facet.connector) return [source];
  const e = tableOf(entity, 'e');
  const key = `e.${physical(entity, store.keyOfEntity)}`;
  const reaches: KeyPath[] = [
    source,
    { table: nameOf(entity), from: tableOf(entity, 'n'), key: `n.${physical(entity, store.keyOfEntity)}` },
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
        a: string,
        r: Relation,
        as: readonly string[],
        b: string,
        s: Relation,
        bs: readonly string[],
      ) => as.map((c, i) => `${a}.${physical(r, c)} = ${b}.${physical(s, bs[i] ?? '')}`).join(' and ');
      if (edge.bridge === null || bridge === null || bridge === undefined) {
        const on = equal('e', entity, near, 'n', neighbour, far);
        reaches.push({
          table: nameOf(neighbour),
          from: `${e} join ${tableOf(neighbour, 'n')} on ${on}`,
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
          from: `${e} join ${tableOf(bridge, 'n')} on ${equal('e', entity, near, 'n', bridge, into)}`,
          key,
        },
        {
          table: nameOf(neighbour),
          from:
            `${e} join ${tableOf(bridge, 'b')} on ${equal('e', entity, near, 'b', bridge, into)}` +
            ` join ${tableOf(neighbour, 'n')} on ${equal('b', bridge, outOf, 'n', neighbour, far)}`,
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

function tableOf(relation: Relation, alias: string): string {
  return `${tableSql(relation)} as ${alias}`;
}

function physical(relation: Relation, name: string): string {
  return quoteIdentifier(relation.columns.find((c) => c.name === name)?.physical ?? name);
}
