import type { Expr } from 'osl-compiler';
import {
  attributesOf,
  effectiveAccess,
  hypotheticalClaims,
  type PolicySnapshot,
} from '../../policy/index.js';
import { sql } from '../../src/base/sql.js';
import type { Survey } from '../../src/engine/index.js';
import { recordedRelations } from '../../src/model/authoring/index.js';
import { type CitusLayout, distributionColumns, readCitus } from '../../src/model/discovery/index.js';
import { type Connector, type Manifest, tableName } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import type { Settings } from '../../src/service/settings.js';
import { recordReading, withLog } from '../audit/log.js';
import { Failure } from '../exit.js';
import { counted } from '../output.js';
import { type DoctorFinding, failed, ok, skipped, warn } from './finding.js';

/** Findings about a Citus cluster: its tables, and row filters that do not select shards. */
export async function citusFindings(
  about: string,
  { system, report }: Survey,
  connector: Connector,
  model: Model,
  settings: Settings,
): Promise<readonly DoctorFinding[]> {
  if (report.kind !== 'citus') return [];
  let layout: CitusLayout;
  try {
    layout = await readCitus(system);
  } catch (error) {
    return [failed(about, error)];
  }
  const used = new Map([...layout].filter(([table]) => connector.tables.has(table)));
  const findings = [ok(about, citusText(used)), ...(await counterFindings(about, system))];
  const { manifest, snapshot } = model;
  if (snapshot === null || distributionColumns(used).length === 0) return findings;
  const checked = { manifest, snapshot };
  return [
    ...findings,
    ...filterFindings(about, connector, used, checked),
    ...(await crossShardFindings(about, connector, used, checked, settings)),
  ];
}

/** Reports, by distributed entity, the roles whose row filters do not limit the distribution column to values. */
function filterFindings(
  about: string,
  connector: Connector,
  layout: CitusLayout,
  { manifest, snapshot }: CheckedModel,
): readonly DoctorFinding[] {
  return [...manifest.catalog.relations.values()].flatMap((relation) => {
    const table = layout.get(tableName(relation));
    if (relation.connector !== connector.name || table?.kind !== 'distributed') return [];
    const roles = [...snapshot.roles].flatMap(([role, { grants }]) => {
      const filters = (grants.get(relation.name) ?? []).flatMap(({ filter }) => filter ?? []);
      return filters.every((filter) => selectsValues(filter, table.column)) ? [] : [role];
    });
    if (roles.length === 0) return [];
    const who = `${counted(roles.length, 'role', 'roles')} (${roles.slice(0, MOST_ROLES).join(', ')})`;
    const message = `\`${relation.name}\` is distributed by ${table.column}, but the row filter of ${who} does not compare it: each query reads every shard`;
    return [warn(about, message, FILTER_HINT)];
  });
}

const MOST_ROLES = 3;

/** Reports how many SELECTs of all clients read several shards, if Citus counts them (13.1 and newer). */
async function counterFindings(about: string, system: Survey['system']): Promise<readonly DoctorFinding[]> {
  const [counter] = await system.query(sql`
    select pg_catalog.current_setting('citus.enable_stat_counters', true) as state,
           pg_catalog.to_regclass('pg_catalog.citus_stat_counters') is not null as there`);
  if (counter?.['there'] !== true) return [];
  if (counter['state'] !== 'on')
    return [
      skipped(about, 'queries that read several shards are not counted: citus.enable_stat_counters is off'),
    ];
  const [row] = await system.query(sql`
    select query_execution_single_shard::float8 as single, query_execution_multi_shard::float8 as multi
      from pg_catalog.citus_stat_counters where name = pg_catalog.current_database()`);
  const [single, multi] = [Number(row?.['single'] ?? 0), Number(row?.['multi'] ?? 0)];
  return [ok(about, `${multi} of ${single + multi} queries counted by Citus read several shards`)];
}

/** Advice about a row filter that does not restrict the distribution column. */
const FILTER_HINT =
  "add a comparison of the distribution column to `rows`, such as `tenant_id = attribute('tenant')`, or distribute the table by the column of the filter";

function isConstant(expression: Expr | null): boolean {
  return expression?.kind === 'literal' || (expression?.kind === 'cast' && isConstant(expression.arg));
}

/** True if `filter` restricts `column` to listed values, so that Citus can choose the shards. */
function selectsValues(filter: Expr, column: string): boolean {
  const isColumn = (expression: Expr | null): boolean =>
    expression?.kind === 'base' && expression.column === column;
  switch (filter.kind) {
    case 'and':
      return filter.args.some((arg) => selectsValues(arg, column));
    case 'or':
      return filter.args.every((arg) => selectsValues(arg, column));
    case 'attribute_match':
      return isColumn(filter.arg);
    case 'operation':
      if (filter.definition.name !== '=') return false;
      return (
        (isColumn(filter.left) && isConstant(filter.right)) ||
        (isConstant(filter.left) && isColumn(filter.right))
      );
    case 'quantified':
      return (
        filter.definition.name === '=' &&
        filter.quantifier === 'any' &&
        isColumn(filter.arg) &&
        isConstant(filter.array)
      );
    default:
      // Other conditions do not restrict the column to listed values.
      return false;
  }
}

const DAY_MS = 86_400_000;
const MOST_NAMED = 5;
const QUERIES: ReadonlySet<string> = new Set(['query', 'prepare', 'copy']);

/** A manifest and the policy that is in force. */
interface CheckedModel {
  readonly manifest: Manifest;
  readonly snapshot: PolicySnapshot;
}

/** Reason why the row filters of a caller do not limit an entity to one value of the distribution column. */
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

/** Number of queries with the same cause, by entity and subject: keys such as `orders by user:ada`. */
type Counts = Map<string, number>;

/**
 * Reports the queries of the last day that no row filter limited to one value of the distribution column, by cause,
 * entity and subject. The audit log has no query texts, so this includes queries that compare the column themselves.
 */
async function crossShardFindings(
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

/** Returns a function that lists the distributed entities of a query that have a `Cause`, each with its cause. */
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

/**
 * Returns why the caller's grants do not let Citus choose shards by `column`; null if each grant has a filter that
 * compares it with constants or single-valued attributes.
 */
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
  // A grant without a filter allows all rows, whatever the other grants select.
  if (filters.length < grants.length) return 'unfiltered';
  if (!filters.every((filter) => selectsValues(filter, column))) return 'other_columns';
  const isSingle = (filter: Expr): boolean =>
    [...attributesOf(filter)].every((name) =>
      chain.some((_, i) => access.attributeValues(i, name).length === 1),
    );
  return filters.every(isSingle) ? null : 'several_values';
}

/** Formats the layout, such as `Citus: 3 tables distributed by tenant_id; 1 reference table`. */
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
