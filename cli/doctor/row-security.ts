import { sql } from '../../src/base/sql.js';
import type { Survey } from '../../src/engine/index.js';
import type { Connector } from '../../src/model/manifest/index.js';
import { SCHEMA, standingOf } from '../../src/model/row-security/index.js';
import type { Model } from '../../src/model/served-model.js';
import { keysThere } from '../../src/service/keys.js';
import { rowSecurityDesign, rowSecurityKey } from '../../src/service/row-security.js';
import type { Settings } from '../../src/service/settings.js';
import { counted } from '../output.js';
import { type DoctorFinding, fail, ok, warn } from './finding.js';

/** What was found of the second line, and which columns the governed role needs to read. */
export interface RowSecurityFindings {
  readonly needed: (table: string, column: string) => boolean;
  readonly findings: readonly DoctorFinding[];
}

const HINT = '`osl row-security --write` writes it, with the role that owns the tables';

/** Whether the database's own policies stand as the files ask: where they do not ask, that none stand. */
export async function rowSecurityFindings(
  about: string,
  survey: Survey,
  connector: Connector,
  model: Model,
  settings: Settings,
): Promise<RowSecurityFindings> {
  if (!connector.rowSecurity) return { needed: () => true, findings: await leftOver(about, survey) };
  // Without a policy there is nothing to compare with, and nothing is read.
  if (model.snapshot === null) return { needed: () => true, findings: [] };
  const design = rowSecurityDesign(connector, survey.report.role, model);
  const keys = keysThere(settings.dataDir, settings.keysDir);
  if (keys === null) {
    const message = `row security is signed with the keys of ${settings.dataDir}, where there are none yet`;
    return { needed: () => true, findings: [fail(about, message, HINT)] };
  }
  const key = rowSecurityKey(keys, connector.name);
  const { faults, uncovered } = await standingOf(survey.system, design, key);
  const stands = `row security stands as the policy has it: ${counted(design.tables.size, 'table', 'tables')}`;
  return {
    needed: (table, column) => design.tables.get(table)?.columns.includes(column) === true,
    findings: [
      ...(faults.length === 0 ? [ok(about, stands)] : faults.map((fault) => fail(about, fault, HINT))),
      ...uncovered.map((name) => warn(about, `row security cannot hold the rows of ${name}: it is no table`)),
      ...(await besideFindings(about, survey, [...design.tables.keys()])),
    ],
  };
}

/** Policies of ours that no setting asks for: every question to their tables fails. */
async function leftOver(about: string, { system }: Survey): Promise<readonly DoctorFinding[]> {
  const found = await system.query(sql`select from pg_catalog.pg_namespace where nspname = $1`, [SCHEMA]);
  if (found.length === 0) return [];
  const message = 'row security of the gateway stands, and the connector does not say `row_security: true`';
  return [
    fail(about, message, 'say it, or take the policies away with `osl row-security --drop --connector …`'),
  ];
}

const MOST_NAMED = 5;

/** What the governed role may read beside the tables that policies guard. */
async function besideFindings(
  about: string,
  { system }: Survey,
  guarded: readonly string[],
): Promise<readonly DoctorFinding[]> {
  const rows = await system.query(
    sql`select n.nspname || '.' || c.relname as name
       from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      where c.relkind in ('r', 'p', 'v', 'm', 'f') and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
        and pg_catalog.has_schema_privilege(n.oid, 'USAGE')
        and pg_catalog.has_any_column_privilege(c.oid, 'SELECT') and n.nspname || '.' || c.relname <> all ($1)
      order by 1`,
    [guarded],
  );
  if (rows.length === 0) return [];
  const names = rows.slice(0, MOST_NAMED).map((row) => String(row['name']));
  const more = rows.length > names.length ? ` and ${rows.length - names.length} more` : '';
  const message = `role may read ${names.join(', ')}${more}, which no row security guards`;
  return [warn(about, message, 'REVOKE what questions do not need')];
}
