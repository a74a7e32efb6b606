import { quoteIdentifier, tableSql } from 'osl-compiler';
import { upstreamOf } from '../../src/base/postgres/hosts.js';
import { sql } from '../../src/base/sql.js';
import { type OutOfServiceCause, type Survey, surveyPostgres } from '../../src/engine/index.js';
import {
  type ModelledType,
  modelType,
  readUpstream,
  type UpstreamRelation,
  type UpstreamSchema,
} from '../../src/model/discovery/index.js';
import { STORE_SCHEMA } from '../../src/model/facets/store-names.js';
import {
  type Connector,
  type DeclaredTableColumn,
  type Manifest,
  systemUrlVariable,
  tableName,
  urlVariable,
} from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { connectorUrl, describeConnectFault, withoutPassword } from '../../src/service/connector-url.js';
import type { Settings } from '../../src/service/settings.js';
import { counted } from '../output.js';
import { citusFindings } from './citus.js';
import { type DoctorFinding, fail, failed, ok, skipped, warn } from './finding.js';
import { rowSecurityFindings, viewLabelFindings } from './row-security.js';

export interface Inspection {
  readonly findings: readonly DoctorFinding[];
  /** Missing objects by connector; connectors that could not be checked are absent. */
  readonly gone: ReadonlyMap<string, readonly MissingObject[]>;
}

/** A table, or a column of it, that is missing or has another type. */
export interface MissingObject {
  /** Name of the table: `schema.table`. */
  readonly table: string;
  readonly column: string | null;
  readonly cause: OutOfServiceCause;
}

interface ConnectorInspection {
  readonly findings: readonly DoctorFinding[];
  /** Missing objects; null if the check was not possible. */
  readonly gone: readonly MissingObject[] | null;
}

export async function inspectDatabases(model: Model, settings: Settings): Promise<Inspection> {
  const findings: DoctorFinding[] = [];
  const gone = new Map<string, readonly MissingObject[]>();
  for (const connector of model.manifest.connectors.values()) {
    const about = `database ${connector.name}`;
    if (connector.kind === 'pglite') {
      findings.push(skipped(about, `embedded in ${settings.dataDir}: the gateway sets it up when it starts`));
      continue;
    }
    const looked = await inspectServer(about, connector, model, settings);
    findings.push(...looked.findings);
    if (looked.gone !== null) gone.set(connector.name, looked.gone);
  }
  return { findings, gone };
}

/** Finds the missing objects of each reachable database, by connector. Reads only the system catalog. */
export async function findDrift({ manifest }: Pick<Model, 'manifest'>): Promise<Inspection['gone']> {
  const gone = new Map<string, readonly MissingObject[]>();
  for (const connector of manifest.connectors.values()) {
    if (connector.kind === 'pglite') continue;
    const found = await driftOf(connector);
    if (found !== null) gone.set(connector.name, found);
  }
  return gone;
}

async function driftOf(connector: Connector): Promise<readonly MissingObject[] | null> {
  let survey: Survey;
  try {
    const url = await connectorUrl(process.env, urlVariable(connector));
    if (url === null) return null;
    survey = await surveyPostgres(url);
  } catch {
    return null; // database monitoring reports this
  }
  try {
    const upstream = await readUpstream(survey.system, schemasOf(connector));
    if (upstream.truncated) return null;
    return driftsOf(upstream, connector, survey.report.role, () => false).flatMap(({ gone }) => gone ?? []);
  } catch {
    return null;
  } finally {
    survey.close();
  }
}

async function inspectServer(
  about: string,
  connector: Connector,
  model: Model,
  settings: Settings,
): Promise<ConnectorInspection> {
  const name = urlVariable(connector);
  let url: string | null;
  try {
    url = await connectorUrl(process.env, name);
  } catch (error) {
    return singleFinding(failed(about, error));
  }
  if (url === null)
    return singleFinding(
      fail(
        about,
        `${name} is not set`,
        `export ${name}=postgres://…, or set ${name}_FILE to a file that holds the URL`,
      ),
    );
  const shown = withoutPassword(url);
  let survey: Survey;
  try {
    survey = await surveyPostgres(url);
  } catch (error) {
    return singleFinding(fail(about, `${shown}: ${describeConnectFault(error)}`));
  }
  try {
    const { needed, findings: guarded } = await rowSecurityFindings(
      about,
      survey,
      connector,
      model,
      settings,
    );
    const upstream = await readUpstream(survey.system, schemasOf(connector));
    const drifts = driftsOf(upstream, connector, survey.report.role, needed);
    const findings = [
      ...roleFindings(about, survey, shown),
      ...(await settingFindings(about, survey, shown)),
      ...(await extensionFindings(about, survey, connector, model.manifest)),
      ...driftFindings(about, drifts, connector),
      ...(await labelFindings(about, survey, upstream, connector)),
      ...guarded,
      ...(await citusFindings(about, survey, connector, model, settings)),
      ...(await systemFindings(about, connector, model.manifest)),
    ];
    // If the schema was not read completely, an object may exist although it was not found.
    return { findings, gone: upstream.truncated ? null : drifts.flatMap(({ gone }) => gone ?? []) };
  } catch (error) {
    return singleFinding(failed(about, error));
  } finally {
    survey.close();
  }
}

/** Checks labels of view columns. Reads schemas beyond the manifest's, because a view may read relations there. */
async function labelFindings(
  about: string,
  { system }: Survey,
  upstream: UpstreamSchema,
  connector: Connector,
): Promise<readonly DoctorFinding[]> {
  const hasViews = upstream.relations.some(
    (r) => r.definition !== null && connector.tables.has(tableName({ schema: r.schema, table: r.name })),
  );
  return hasViews ? viewLabelFindings(about, await readUpstream(system), connector) : [];
}

function singleFinding(finding: DoctorFinding): ConnectorInspection {
  return { findings: [finding], gone: null };
}

/** INVARIANT: applies the same checks to the role as the gateway does on every connection. */
function roleFindings(about: string, { report }: Survey, url: string): readonly DoctorFinding[] {
  // The hint applies only to warnings about the role; others are about the server.
  const warnings = report.warnings.map((w) =>
    w.startsWith(`role "${report.role}"`)
      ? warn(about, w, 'use a role that can only read: more privileges are not needed')
      : warn(about, w),
  );
  if (report.fault === null)
    return [
      ok(about, `${url}: role "${report.role}" is not a superuser and cannot bypass row security`),
      ...warnings,
    ];
  const hint = 'use a role that can log in and read; `osl init --create-role osl_reader` creates one';
  return [fail(about, `the gateway refuses role "${report.role}": role ${report.fault}`, hint)];
}

const SKEW_WARN_S = 5;
const SKEW_FAIL_S = 60;

async function settingFindings(
  about: string,
  { system, report }: Survey,
  url: string,
): Promise<readonly DoctorFinding[]> {
  const asked = Date.now();
  const [row] = await system.query(sql`
    select extract(epoch from clock_timestamp())::float8 as now,
           current_setting('log_parameter_max_length')::int as logged,
           current_setting('log_parameter_max_length_on_error')::int as logged_on_error,
           current_setting('log_statement') as statements,
           current_setting('log_min_duration_statement')::int as slow,
           (select ssl from pg_catalog.pg_stat_ssl where pid = pg_backend_pid()) as ssl`);
  const now = (asked + Date.now()) / 2_000;
  return [
    ...clockFinding(about, Math.abs(Number(row?.['now']) - now)),
    ...logFindings(about, report.role, row ?? {}),
    ...encryptionFinding(about, row?.['ssl'] === true, url),
    ok(about, `Postgres ${report.serverVersion}`),
  ];
}

function clockFinding(about: string, skew: number): readonly DoctorFinding[] {
  if (!(skew > SKEW_WARN_S)) return []; // NaN: the database gave no time
  const message = `the clocks of the database and of this machine differ by ${skew.toFixed(1)} s`;
  return [
    skew > SKEW_FAIL_S
      ? fail(about, message, 'tokens expire after 300 s: synchronize both clocks with NTP')
      : warn(about, message, 'synchronize both clocks with NTP'),
  ];
}

/** Checks that the server does not log parameters, which contain keys of `hash` masks and values of queries. */
function logFindings(
  about: string,
  role: string,
  row: Readonly<Record<string, unknown>>,
): readonly DoctorFinding[] {
  const says = row['statements'] === 'all' || Number(row['slow']) >= 0;
  const hint = `as superuser: ALTER ROLE ${quoteIdentifier(role)} SET log_parameter_max_length = 0`;
  const findings: DoctorFinding[] = [];
  if (Number(row['logged']) !== 0) {
    const when = says
      ? 'the server log contains statements with'
      : 'if statement logging is turned on, the server log will contain';
    const tell = says ? fail : warn;
    findings.push(
      tell(
        about,
        `${when} parameter values, which can be personal data: log_parameter_max_length is not 0`,
        hint,
      ),
    );
  }
  if (Number(row['logged_on_error']) !== 0)
    findings.push(
      fail(
        about,
        'the server log contains parameter values of failed statements, which can be personal data',
        hint.replace('length', 'length_on_error'),
      ),
    );
  return findings.length > 0 ? findings : [ok(about, 'the server log contains no parameter values')];
}

function encryptionFinding(about: string, ssl: boolean, url: string): readonly DoctorFinding[] {
  const hosts = upstreamOf(url).urls.map((one) => new URL(one).hostname);
  const remote = hosts.filter((host) => host !== '' && !/^(localhost|127(\.\d+){3}|\[::1\])$/.test(host));
  if (ssl || remote.length === 0) return [];
  const message = `the connection to ${remote.join(', ')} is not encrypted`;
  return [warn(about, message, 'add ?sslmode=verify-full to the URL')];
}

async function extensionFindings(
  about: string,
  { system }: Survey,
  connector: Connector,
  manifest: Manifest,
): Promise<readonly DoctorFinding[]> {
  const facets = [...manifest.facets.values()].filter((f) => f.connector === connector.name);
  if (facets.length === 0) return [];
  const [vector] = await system.query(
    sql`select extversion as v from pg_catalog.pg_extension where extname = 'vector'`,
  );
  if (vector !== undefined) return [ok(about, `pgvector ${String(vector['v'])}`)];
  return [
    fail(
      about,
      `facet ${facets.map((f) => f.name).join(', ')} needs the extension pgvector, which is not installed`,
      'run CREATE EXTENSION vector as superuser',
    ),
  ];
}

const SYSTEM_HINT = '"System credentials" in docs/operations.md has the SQL that creates the role';

async function systemFindings(
  about: string,
  connector: Connector,
  { facets }: Manifest,
): Promise<readonly DoctorFinding[]> {
  const variable = systemUrlVariable(connector);
  const needed = [...facets.values()].filter((f) => f.connector === connector.name).map((f) => f.name);
  let url: string | null;
  try {
    url = await connectorUrl(process.env, variable);
  } catch (error) {
    return [failed(about, error)];
  }
  if (url === null && needed.length > 0)
    return [fail(about, `${variable} is not set, and facet ${needed.join(', ')} needs it`, SYSTEM_HINT)];
  if (url === null)
    return [
      skipped(about, `${variable} is not set: only text facets and suggestions need it, queries do not`),
    ];
  const shown = `${variable}, ${withoutPassword(url)}`;
  let survey: Survey;
  try {
    survey = await surveyPostgres(url);
  } catch (error) {
    return [fail(about, `${shown}: ${describeConnectFault(error)}`, SYSTEM_HINT)];
  }
  try {
    const [row] = await survey.system.query(MAY_STORE, [STORE_SCHEMA]);
    if (row?.['may'] === true) return [ok(about, `${shown}: can store the index of text facets`)];
    const message = `${shown}: role "${survey.report.role}" cannot create tables in schema ${STORE_SCHEMA}`;
    return [(needed.length > 0 ? fail : warn)(about, message, SYSTEM_HINT)];
  } finally {
    survey.close();
  }
}

const MAY_STORE = sql`
  select case when pg_catalog.to_regnamespace($1) is null
              then pg_catalog.has_database_privilege(pg_catalog.current_database(), 'CREATE')
              else pg_catalog.has_schema_privilege($1, 'CREATE') end as may`;

function schemasOf({ tables }: Connector): readonly string[] {
  return [...new Set([...tables.values()].map((t) => t.schema))];
}

const MOST_DRIFTS = 20;

interface Drift {
  readonly message: string;
  readonly hint: string;
  /** The missing object; null if it still exists with the declared type. */
  readonly gone: MissingObject | null;
}

const GONE = 'take it out of the manifest, or correct its name there';
const VIEW = 'this type is not supported: expose a view that casts the column to text';

function grantOf({ schema, name }: UpstreamRelation, column: string, role: string): string {
  const table = tableSql({ schema, table: name });
  return `GRANT SELECT (${quoteIdentifier(column)}) ON ${table} TO ${quoteIdentifier(role)}`;
}

/**
 * Returns differences between the declarations and the database that would make queries fail.
 *
 * @param needed true if the governed role must be able to read a column; with row security, only columns used by a
 * grant
 */
function driftsOf(
  upstream: UpstreamSchema,
  { tables }: Connector,
  role: string,
  needed: (table: string, column: string) => boolean,
): readonly Drift[] {
  const relations = new Map(
    upstream.relations.map((r) => [tableName({ schema: r.schema, table: r.name }), r]),
  );
  return [...tables].flatMap(([name, table]): readonly Drift[] => {
    const relation = relations.get(name);
    if (relation === undefined)
      return [
        {
          message: `the database has no table ${name}`,
          hint: GONE,
          gone: { table: name, column: null, cause: 'gone' },
        },
      ];
    const columns = new Map(relation.columns.map((c) => [c.name, c]));
    return [...table.columns.values()].flatMap((declared): readonly Drift[] => {
      const column = columns.get(declared.name);
      const id = `${name}.${declared.name}`;
      if (column === undefined) {
        const gone = { table: name, column: declared.name, cause: 'gone' } as const;
        return [{ message: `the database has no column ${id}`, hint: GONE, gone }];
      }
      if (!column.readable && needed(name, declared.name)) {
        const hint = grantOf(relation, column.name, role);
        return [{ message: `the gateway's role cannot read ${id}`, hint, gone: null }];
      }
      const model = modelType(column);
      if (model !== null && matchesDeclaration(declared, model, column.stored)) return [];
      const hint = model === null ? VIEW : `declare it as \`${declarationText(model)}\` in the manifest`;
      const was = declared.stored ?? declared.form?.sql ?? declared.type;
      const changed = { table: name, column: declared.name, cause: 'changed' } as const;
      const gone = isOfType(declared, model, column.stored) ? null : changed;
      return [{ message: `${id} is ${column.type} in the database, and ${was} in the manifest`, hint, gone }];
    });
  });
}

/**
 * True if the declaration fits the database type. Any type may be declared as text. The word `enum` before the name of
 * an enum, and a length, may be omitted.
 *
 * @param stored the type in the database, in the notation of `stored` in a manifest
 */
function matchesDeclaration(
  declared: DeclaredTableColumn,
  model: ModelledType,
  stored: string | null,
): boolean {
  const { labels } = declared;
  if (labels !== null && JSON.stringify(labels) !== JSON.stringify(model.labels)) return false;
  const isSpelledSo = declared.form === null || declared.form.sql === model.spelled;
  return isOfType(declared, model, stored) && (declared.stored !== null || isSpelledSo);
}

/** True if the values have the declared type; length and labels may differ. */
function isOfType(declared: DeclaredTableColumn, model: ModelledType | null, stored: string | null): boolean {
  if (declared.stored !== null) return stored === declared.stored || stored === `enum ${declared.stored}`;
  return model !== null && declared.type === model.type && model.stored === null;
}

function declarationText({ type, spelled, stored, labels }: ModelledType): string {
  const listed = labels === null ? '' : `, labels: ${JSON.stringify(labels)}`;
  return stored === null ? `type: ${spelled}` : `type: ${type}, stored: ${JSON.stringify(stored)}${listed}`;
}

function driftFindings(
  about: string,
  drifts: readonly Drift[],
  { tables }: Connector,
): readonly DoctorFinding[] {
  if (drifts.length === 0)
    return [ok(about, `the database matches the manifest: ${counted(tables.size, 'table', 'tables')}`)];
  const more = drifts.length - MOST_DRIFTS;
  return [
    ...drifts.slice(0, MOST_DRIFTS).map(({ message, hint }) => fail(about, message, hint)),
    ...(more > 0 ? [fail(about, `and ${more} more such differences`)] : []),
  ];
}
