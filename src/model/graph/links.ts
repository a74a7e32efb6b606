import type { Edge } from 'osl-compiler';
import { deprecationOf, type Manifest } from '../manifest/index.js';
import type { BridgeView, LinkView } from './view.js';
import type { VisibleRelation } from './visible-relation.js';

type Relations = ReadonlyMap<string, VisibleRelation>;

/** The declared links whose two ends, and whose bridge, the reader can join on. */
export function linksOf(manifest: Manifest, relations: Relations): readonly LinkView[] {
  return manifest.catalog.edges.flatMap((edge) => linkOf(edge, manifest, relations));
}

function linkOf(edge: Edge, manifest: Manifest, relations: Relations): readonly LinkView[] {
  const { name, from, to, fromColumns, toColumns } = edge;
  if (!canJoin(relations.get(from), fromColumns) || !canJoin(relations.get(to), toColumns)) return [];
  const places = [from, to, edge.bridge?.name ?? from].map((n) => relations.get(n)?.relation.connector);
  const ends = {
    from: { entity: from, columns: fromColumns },
    to: { entity: to, columns: toColumns },
    followed: new Set(places).size === 1,
  };
  if (edge.bridge === null) {
    const declared = manifest.relationships.get(name);
    const kind = declared?.kind ?? 'many_to_one';
    const deprecated = deprecationOf(manifest, 'relationships', name);
    return [{ name, description: declared?.description ?? null, deprecated, kind, ...ends, bridge: null }];
  }
  const bridge = bridgeOf(edge.bridge, relations.get(edge.bridge.name));
  if (bridge === null) return [];
  const description = relations.get(name)?.relation.description ?? null;
  const deprecated = deprecationOf(manifest, 'bridges', name);
  return [{ name, description, deprecated, kind: 'many_to_many', ...ends, bridge }];
}

function bridgeOf(
  { name, fromColumns, toColumns }: NonNullable<Edge['bridge']>,
  seen: VisibleRelation | undefined,
): BridgeView | null {
  if (seen === undefined || !canJoin(seen, [...fromColumns, ...toColumns])) return null;
  const sealedKeys = seen.relation.sealedKeys.filter((k) => seen.joinable.has(k));
  return { name, fromColumns, toColumns, columns: seen.views, sealedKeys };
}

function canJoin(seen: VisibleRelation | undefined, columns: readonly string[]): boolean {
  return seen !== undefined && columns.every((c) => seen.joinable.has(c));
}
