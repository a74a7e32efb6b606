import type { AdoptionCandidate, CandidateLink } from '../../src/model/discovery/index.js';
import type { Manifest } from '../../src/model/manifest/index.js';
import { tableName } from '../../src/model/manifest/index.js';
import { tableOf } from './choose.js';

export interface LostLink {
  readonly table: string;
  /** The foreign key as text: `loan_copy (isbn, copy) to lib.copy (isbn, number)`. */
  readonly link: string;
  readonly reason: string;
}

export function lostLinks(candidates: readonly AdoptionCandidate[], manifest: Manifest): readonly LostLink[] {
  const adopted = new Map([...manifest.catalog.relations.values()].map((r) => [tableName(r), r.name]));
  return candidates.flatMap((candidate) =>
    adopted.has(tableOf(candidate))
      ? candidate.foreign_keys
          .filter((link) => !isCarried(candidate, link, manifest, adopted))
          .map((link) => ({
            table: tableOf(candidate),
            link: shown(link),
            reason: reasonOf(candidate, link, manifest, adopted),
          }))
      : [],
  );
}

type AdoptedTables = ReadonlyMap<string, string>;

function shown({ name, columns, references }: CandidateLink): string {
  return `${name} (${columns.join(', ')}) to ${tableOf(references)} (${references.columns.join(', ')})`;
}

function physical(entity: string, names: readonly string[], { catalog }: Manifest): readonly string[] {
  const columns = catalog.relations.get(entity)?.columns ?? [];
  return names.map((name) => columns.find((c) => c.name === name)?.physical ?? '');
}

function isCarried(
  candidate: AdoptionCandidate,
  { columns, references }: CandidateLink,
  manifest: Manifest,
  adopted: AdoptedTables,
): boolean {
  const own = adopted.get(tableOf(candidate)) ?? '';
  const target = adopted.get(tableOf(references));
  const same = (names: readonly string[]): boolean =>
    [...names].sort().join('\n') === [...columns].sort().join('\n');
  const bridge = manifest.bridges.get(own);
  if (bridge !== undefined)
    return [bridge.left, bridge.right].some(
      (side) => side.entity === target && same(physical(own, side.columns, manifest)),
    );
  return [...manifest.relationships.values()].some(
    ({ from, to }) =>
      from.entity === own && to.entity === target && same(physical(own, from.columns, manifest)),
  );
}

function reasonOf(
  candidate: AdoptionCandidate,
  { columns, references }: CandidateLink,
  manifest: Manifest,
  adopted: AdoptedTables,
): string {
  const target = adopted.get(tableOf(references));
  if (target === undefined) return `${tableOf(references)} is not in the manifest`;
  const own = manifest.catalog.relations.get(adopted.get(tableOf(candidate)) ?? '');
  const hidden = columns.find((c) => own?.columns.every((x) => x.physical !== c));
  if (hidden !== undefined) return `column ${hidden} is not in the manifest`;
  if (manifest.bridges.has(target)) return `${target} is a bridge: relationships lead to entities`;
  return `it refers to no primary key of ${target}; a query may join on it`;
}
