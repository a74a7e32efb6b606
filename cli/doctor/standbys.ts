import { sql } from '../../src/base/sql.js';
import {
  compareStandby,
  type StandbyComparison,
  type Survey,
  surveyPostgres,
} from '../../src/engine/index.js';
import { type Connector, type Manifest, tableName, urlVariable } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { connectorUrl, describeConnectFault, withoutPassword } from '../../src/service/connector-url.js';
import { poolSizeOf } from '../../src/service/engines.js';
import type { Settings } from '../../src/service/settings.js';
import { workersFor } from '../../src/service/workers.js';
import { type DoctorFinding, fail, failed, ok, warn } from './finding.js';

/** Sessions per worker on a standby besides the pool: shared ones, and one to check the standby's position. */
const MORE_SESSIONS = 5;

/** Findings about standbys. Only `osl doctor` runs these checks; a gateway monitors its standbys instead. */
export async function standbyFindings(
  { manifest }: Model,
  settings: Settings,
): Promise<readonly DoctorFinding[]> {
  const each = [...manifest.connectors.values()].map((connector) =>
    connectorFindings(connector, manifest, settings),
  );
  return (await Promise.all(each)).flat();
}

async function connectorFindings(
  connector: Connector,
  manifest: Manifest,
  settings: Settings,
): Promise<readonly DoctorFinding[]> {
  const { standbys } = connector;
  if (standbys === null) return [];
  // Without a URL of the primary, nothing can be compared; the database check reports the missing URL.
  const primaryUrl = await connectorUrl(process.env, urlVariable(connector)).catch(() => null);
  if (primaryUrl === null) return [];
  const checked = {
    primaryUrl,
    maxLagMs: standbys.maxLagMs,
    timeoutMs: settings.caps.timeoutMs,
    tables: [...connector.tables.values()].map((table) => tableName(table)),
    sessions: poolSizeOf(connector, settings) + workersFor(settings, manifest) * MORE_SESSIONS,
  };
  const each = standbys.urlEnvs.map((name) =>
    findingsOf({ ...checked, about: `database ${connector.name}, standby ${name}` }, name),
  );
  return (await Promise.all(each)).flat();
}

interface CheckedStandby {
  readonly about: string;
  readonly primaryUrl: string;
  readonly maxLagMs: number;
  /** Timeout of a statement in ms. */
  readonly timeoutMs: number;
  /** Declared tables, as `schema.table`. */
  readonly tables: readonly string[];
  /** Maximum number of sessions that this gateway opens on the standby. */
  readonly sessions: number;
}

const LEFT_OUT = 'until then the primary answers its share of the queries';

/** @param name environment variable with the URL of the standby */
async function findingsOf(checked: CheckedStandby, name: string): Promise<readonly DoctorFinding[]> {
  const { about } = checked;
  let url: string | null;
  try {
    url = await connectorUrl(process.env, name);
  } catch (error) {
    return [failed(about, error)];
  }
  if (url === null)
    return [fail(about, `${name} is not set`, `export ${name}=postgres://…, or take it out of \`standbys\``)];
  let survey: Survey;
  try {
    survey = await surveyPostgres(url);
  } catch (error) {
    return [unreachable(about, url, error)];
  }
  try {
    return await serverFindings(checked, survey, url);
  } finally {
    survey.close();
  }
}

function unreachable(about: string, url: string, error: unknown): DoctorFinding {
  const message = `${withoutPassword(url)}: ${describeConnectFault(error)}`;
  return warn(about, message, `correct the URL or the server; ${LEFT_OUT}`);
}

async function serverFindings(
  checked: CheckedStandby,
  survey: Survey,
  url: string,
): Promise<readonly DoctorFinding[]> {
  const { about, primaryUrl, maxLagMs } = checked;
  let compared: StandbyComparison;
  try {
    compared = await compareStandby(primaryUrl, url, maxLagMs);
  } catch (error) {
    return [unreachable(about, url, error)];
  }
  const identity = identityFinding(about, withoutPassword(url), compared, maxLagMs);
  if (!compared.isStandby) return [identity];
  return [
    ...roleFindings(about, survey),
    identity,
    ...(await settingFindings(checked, survey)),
    ...(await unloggedFindings(checked, survey)),
  ];
}

/** INVARIANT: applies the same checks to the role as the gateway does on every connection. */
function roleFindings(about: string, { report }: Survey): readonly DoctorFinding[] {
  if (report.fault === null) return [];
  const message = `the gateway refuses role "${report.role}" and does not use this standby: role ${report.fault}`;
  return [warn(about, message, 'use the role of the primary, which reaches the standby by replication')];
}

function identityFinding(
  about: string,
  shown: string,
  { isStandby, isOfSystem, isOnTimeline, lagMs }: StandbyComparison,
  maxLagMs: number,
): DoctorFinding {
  if (!isOfSystem)
    return warn(
      about,
      `${shown}: belongs to another system than the primary, so it is not used`,
      'correct the URL: a standby is a physical copy of the primary (pg_basebackup), which streams from it',
    );
  if (!isStandby)
    return isOnTimeline
      ? ok(about, `${shown}: is the primary now, so it is not used as a standby`)
      : warn(
          about,
          `${shown}: is a primary of another timeline, so it is not used`,
          'after a failover, make the old primary a standby of the new one (pg_rewind), or take it out',
        );
  if (!isOnTimeline)
    return warn(
      about,
      `${shown}: follows another timeline than the primary, so it is not used`,
      'run CHECKPOINT there if it follows the new primary already (or make the role a member of pg_read_all_stats); otherwise correct its primary_conninfo',
    );
  if (lagMs === null)
    return warn(
      about,
      `${shown}: has not replayed within ${maxLagMs} ms what the primary had`,
      `see pg_stat_replication at the primary and pg_get_wal_replay_pause_state() there, or raise max_lag_ms; ${LEFT_OUT}`,
    );
  return ok(about, `${shown}: a standby of the primary, at most ${lagMs} ms behind it`);
}

async function settingFindings(
  { about, timeoutMs, sessions }: CheckedStandby,
  { system }: Survey,
): Promise<readonly DoctorFinding[]> {
  const [row] = await system.query(sql`
    select current_setting('hot_standby_feedback')::bool as feedback,
           (select setting::int from pg_catalog.pg_settings where name = 'max_standby_streaming_delay') as delay,
           current_setting('max_connections')::int
             - current_setting('superuser_reserved_connections')::int as connections`);
  return [
    ...conflictFinding(about, row?.['feedback'] === true, Number(row?.['delay']), timeoutMs),
    ...connectionFinding(about, Number(row?.['connections']), sessions),
  ];
}

/** @param delayMs -1: replay waits for statements without limit */
function conflictFinding(
  about: string,
  hasFeedback: boolean,
  delayMs: number,
  timeoutMs: number,
): readonly DoctorFinding[] {
  if (hasFeedback || delayMs < 0 || delayMs >= timeoutMs) return [];
  const message = `cancels statements that hold up its replay for ${delayMs} ms (SQLSTATE 40001), and the primary runs them again: hot_standby_feedback is off`;
  return [
    warn(
      about,
      message,
      'there: ALTER SYSTEM SET hot_standby_feedback = on (the primary then keeps dead rows as long as a statement needs them), or raise max_standby_streaming_delay',
    ),
  ];
}

function connectionFinding(about: string, available: number, needed: number): readonly DoctorFinding[] {
  if (available >= needed) return [];
  return [
    warn(
      about,
      `accepts ${available} connections, and this gateway opens up to ${needed}`,
      'raise max_connections there, or lower OSL_POOL_SIZE',
    ),
  ];
}

async function unloggedFindings(
  { about, tables }: CheckedStandby,
  { system }: Survey,
): Promise<readonly DoctorFinding[]> {
  const rows = await system.query(
    sql`select n.nspname || '.' || c.relname as name
          from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where c.relpersistence = 'u' and n.nspname || '.' || c.relname = any($1::text[]) order by 1`,
    [tables],
  );
  if (rows.length === 0) return [];
  const list = rows.map((row) => String(row['name'])).join(', ');
  const message = `cannot read ${list}, which is not logged: each query of it fails there, and the primary runs it again`;
  return [warn(about, message, 'ALTER TABLE … SET LOGGED at the primary')];
}
