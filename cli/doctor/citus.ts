import { sql } from '../../src/base/sql.js';
import type { Survey } from '../../src/engine/index.js';
import { type CitusLayout, distributionColumns, readCitus } from '../../src/model/discovery/index.js';
import { type Connector, tableName } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import type { Settings } from '../../src/service/settings.js';
import { counted } from '../output.js';
import { citusText } from '../proposal/index.js';
import { FILTER_HINT, selectsValues } from './citus-filters.js';
import { type CheckedModel, crossShardFindings } from './citus-queries.js';
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

/** Roles with row filters that do not compare the distribution column with values, by entity. */
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

/** Counts SELECTs at the coordinator, by anybody, if Citus counts them (13.1 and newer). */
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
