import { sql } from '../../src/base/sql.js';
import type { Survey } from '../../src/engine/index.js';
import type { UpstreamSchema } from '../../src/model/discovery/index.js';
import type { Connector } from '../../src/model/manifest/index.js';
import { rowSecurityStatus, SCHEMA } from '../../src/model/row-security/index.js';
import type { Model } from '../../src/model/served-model.js';
import { existingKeys } from '../../src/service/keys.js';
import { rowSecurityDesign, rowSecurityKey } from '../../src/service/row-security.js';
import type { Settings } from '../../src/service/settings.js';
import { counted } from '../output.js';
import { columnId } from '../proposal/choose.js';
import { type ViewFlows, viewFlows } from '../proposal/view-flows.js';
import { type DoctorFinding, fail, ok, warn } from './finding.js';

/** Findings about row security in the database, and the columns that the governed role needs to read. */
export interface RowSecurityFindings {
  readonly needed: (table: string, column: string) => boolean;
  readonly findings: readonly DoctorFinding[];
}

const HINT = 'run `osl row-security --write` as the role that owns the tables';

export async function rowSecurityFindings(
  about: string,
  survey: Survey,
  connector: Connector,
  model: Model,
  settings: Settings,
): Promise<RowSecurityFindings> {
  if (!connector.rowSecurity) return { needed: () => true, findings: await leftoverFindings(about, survey) };
  if (model.snapshot === null) return { needed: () => true, findings: [] };
  const design = rowSecurityDesign(connector, survey.report.role, model);
  const keys = existingKeys(settings.dataDir, settings.keysDir);
  if (keys === null) {
    const message = `row security is signed with the keys of ${settings.dataDir}, where there are none yet`;
    return { needed: () => true, findings: [fail(about, message, HINT)] };
  }
  const key = rowSecurityKey(keys, connector.name);
  const { faults, uncovered } = await rowSecurityStatus(survey.system, design, key);
  const stands = `row security matches the policy: ${counted(design.tables.size, 'table', 'tables')}`;
  return {
    needed: (table, column) => design.tables.get(table)?.columns.includes(column) === true,
    findings: [
      ...(faults.length === 0 ? [ok(about, stands)] : faults.map((fault) => fail(about, fault, HINT))),
      ...uncovered.map((name) => warn(about, `row security cannot protect ${name}: it is not a table`)),
      ...(await unprotectedFindings(about, survey, [...design.tables.keys()])),
    ],
  };
}

async function leftoverFindings(about: string, { system }: Survey): Promise<readonly DoctorFinding[]> {
  const found = await system.query(sql`select from pg_catalog.pg_namespace where nspname = $1`, [SCHEMA]);
  if (found.length === 0) return [];
  const message =
    'the database has row security of this gateway, but the connector lacks `row_security: true`: queries to these tables fail';
  return [
    fail(
      about,
      message,
      'add `row_security: true`, or drop the policies with `osl row-security --drop --connector …`',
    ),
  ];
}

const MOST_NAMED = 5;

async function unprotectedFindings(
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
  const message = `the role can read ${names.join(', ')}${more}, which row security does not protect`;
  return [warn(about, message, 'REVOKE privileges that queries do not need')];
}

const MOST_VIEW_COLUMNS = 20;
const LABEL_HINT =
  'give it the label of its source if it reveals that value; if not, say so in its description';

/** View columns that lack the sensitivity label of a column they are computed from, directly or through other views. */
export function viewLabelFindings(
  about: string,
  { relations, truncated }: UpstreamSchema,
  connector: Connector,
): readonly DoctorFinding[] {
  const declared = labelsOf(connector);
  const views = relations.filter((r) => r.definition !== null);
  const shown = views.flatMap(({ schema, name, columns }) =>
    columns.map((c) => columnId({ schema, table: name }, c.name)).filter((id) => declared.has(id)),
  );
  if (shown.length === 0 || [...declared.values()].every((label) => label === null)) return [];
  const flows = viewFlows(relations);
  const lacking = shown.flatMap((id): readonly DoctorFinding[] => {
    const own = declared.get(id) ?? null;
    const sources = [...sourcesOf(id, flows)].flatMap((source) => {
      const label = declared.get(source) ?? null;
      return label === null ? [] : [{ source, label }];
    });
    if (sources.length === 0 || sources.some(({ label }) => label === own)) return [];
    const made = sources.slice(0, 3).map(({ source, label }) => `${source} (${label})`);
    const more = sources.length > made.length ? ` and ${sources.length - made.length} more` : '';
    const label = own === null ? 'no label' : `the label ${own}`;
    return [
      warn(
        about,
        `view column ${id} has ${label}, and is computed from ${made.join(', ')}${more}`,
        LABEL_HINT,
      ),
    ];
  });
  const unread = truncated
    ? [warn(about, 'not every view was checked: the database has too many relations')]
    : [];
  if (lacking.length === 0)
    return [
      ...unread,
      ok(about, `${counted(shown.length, 'column', 'columns')} of views labelled like their sources`),
    ];
  const more = lacking.length - MOST_VIEW_COLUMNS;
  return [
    ...unread,
    ...lacking.slice(0, MOST_VIEW_COLUMNS),
    ...(more > 0 ? [warn(about, `and ${more} more such columns of views`, LABEL_HINT)] : []),
  ];
}

function labelsOf({ tables }: Connector): ReadonlyMap<string, string | null> {
  return new Map(
    [...tables.values()].flatMap((table) =>
      [...table.columns.values()].map((c) => [columnId(table, c.name), c.sensitivity] as const),
    ),
  );
}

function sourcesOf(id: string, flows: ViewFlows): ReadonlySet<string> {
  const reached = new Set<string>();
  const open = [id];
  for (let at = open.pop(); at !== undefined; at = open.pop()) {
    for (const { id: source } of flows.get(at) ?? []) {
      if (reached.has(source)) continue;
      reached.add(source);
      open.push(source);
    }
  }
  return reached;
}
