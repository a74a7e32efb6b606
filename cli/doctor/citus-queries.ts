import type { Expr } from 'osl-compiler';
import {
  attributesOf,
  effectiveAccess,
  hypotheticalClaims,
  type PolicySnapshot,
} from '../../policy/index.js';
import { recordedRelations } from '../../src/model/authoring/index.js';
import type { CitusLayout } from '../../src/model/discovery/index.js';
import { type Connector, type Manifest, tableName } from '../../src/model/manifest/index.js';
import type { Settings } from '../../src/service/settings.js';
import { recordReading, withLog } from '../audit/log.js';
import { Failure } from '../exit.js';
import { counted } from '../output.js';
import { FILTER_HINT, selectsValues } from './citus-filters.js';
import { type DoctorFinding, ok, skipped, warn } from './finding.js';

const DAY_MS = 86_400_000;
const MOST_NAMED = 5;
const QUERIES: ReadonlySet<string> = new Set(['query', 'prepare', 'copy']);

/** A manifest and the policy that is in force. */
export interface CheckedModel {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** Why the row filters of a caller do not limit an entity to one value of the distribution column. */
type Cause = 'unfiltered' | 'other_columns' | 'several_values';

const CAUSES: Readonly<Record<Cause, { readonly text: string; readonly hint: string }>> = {
  unfiltered: {
    text: 'these read entities without any row filter, so all shards',
    hint: 'a condition on the distribution column in the query limits it as well; the log has no text of queries',
  },
  other_columns: {
    text: 'these have row filters on other columns than the distribution column, so read all shards',
    hint: FILTER_HINT,
  },
  several_values: {
    text: 'the row filter selects several values of the distribution column for these, so their shards',
    hint: 'nothing to do if these callers need several; one value goes to one shard',
  },
};

/** Names of one cause with the number of queries, such as `orders by user:ada`. */
type Counts = Map<string, number>;

/**
 * Names the queries of the last day that no row filter limited to one value of the distribution column, by cause,
 * subject and entity. The log has no text of queries, so a query with such a condition of its own is named, too.
 */
export async function crossShardFindings(
  about: string,
  connector: Connector,
  layout: CitusLayout,
  model: CheckedModel,
  { dataDir }: Settings,
): Promise<readonly DoctorFinding[]> {
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const crossing = crossingOf(connector, layout, model);
  const counts = new Map<Cause, Counts>();
  let all = 0;
  try {
    await withLog({ dataDir }, async (log) => {
      await recordReading(log, 'doctor', { since });
      for await (const { action, chain, objects } of log.search({ since, kind: 'decision' }, false)) {
        if (!QUERIES.has(action)) continue;
        all += 1;
        for (const [entity, cause] of crossing(chain, objects)) {
          const own: Counts = counts.get(cause) ?? new Map();
          const key = `${entity} by ${chain.at(-1)}`;
          counts.set(cause, own.set(key, (own.get(key) ?? 0) + 1));
        }
      }
    });
  } catch (error) {
    if (error instanceof Failure)
      return [skipped(about, 'queries of the last day: there is no audit log to read')];
    throw error;
  }
  const text = `${counted(all, 'query', 'queries')} of the last day`;
  if (counts.size === 0)
    return [ok(about, `${text}: all were limited to one value of the distribution column`)];
  return [...counts].map(([cause, own]) =>
    warn(about, `${text}: ${CAUSES[cause].text}: ${namesText(own)}`, CAUSES[cause].hint),
  );
}

function namesText(counts: Counts): string {
  const named = [...counts].toSorted(([, a], [, b]) => b - a).slice(0, MOST_NAMED);
  const more = counts.size > MOST_NAMED ? `, and ${counts.size - MOST_NAMED} more` : '';
  return `${named.map(([key, n]) => `${key} (${n})`).join(', ')}${more}`;
}

/** Distributed entities of a query that its caller's row filters do not limit to one value, with the cause. */
function crossingOf(
  connector: Connector,
  layout: CitusLayout,
  { manifest, snapshot }: CheckedModel,
): (chain: readonly string[], objects: readonly string[]) => readonly (readonly [string, Cause])[] {
  const known = new Map<string, Cause | null>();
  return (chain, objects) =>
    recordedRelations(objects, manifest).flatMap((relation) => {
      const table = layout.get(tableName(relation));
      if (relation.connector !== connector.name || table?.kind !== 'distributed') return [];
      const key = JSON.stringify([chain, relation.name]);
      const cached = known.get(key);
      const cause =
        cached === undefined ? causeOf(chain, relation.name, table.column, { manifest, snapshot }) : cached;
      known.set(key, cause);
      return cause === null ? [] : [[relation.name, cause] as const];
    });
}

/** Null if each filter of the caller's grants compares `column` with one value. */
function causeOf(
  chain: readonly string[],
  entity: string,
  column: string,
  { manifest, snapshot }: CheckedModel,
): Cause | null {
  const access = effectiveAccess(
    hypotheticalClaims({ chain, roles: null }, snapshot),
    snapshot,
    manifest.catalog,
  );
  const grants = access.relations.get(entity)?.grants ?? [];
  const filters = grants.flatMap(({ filter }) => filter ?? []);
  // A grant without a filter opens all rows, whatever the others select.
  if (filters.length < grants.length) return 'unfiltered';
  if (!filters.every((filter) => selectsValues(filter, column))) return 'other_columns';
  const isSingle = (filter: Expr): boolean =>
    [...attributesOf(filter)].every((name) =>
      chain.some((_, i) => access.attributeValues(i, name).length === 1),
    );
  return filters.every(isSingle) ? null : 'several_values';
}
