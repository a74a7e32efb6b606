import {
  type AuditDecision,
  type AuditFilter,
  type AuditKind,
  type AuditOutcome,
  type AuditQuery,
  type AuditRecord,
  type AuditSurface,
  decisionIn,
} from '../../audit/index.js';
import { instant, parseInstant } from '../../src/base/instant.js';
import { version } from '../../src/base/package-root.js';
import { type Failure, failure, usage } from '../exit.js';
import { note, print, visible } from '../output.js';
import { formatCsv } from '../table.js';
import { type AuditFlags, recordReading, withLog } from './log.js';
import type { ReadLog } from './table.js';

export interface SearchFlags extends AuditFlags {
  readonly subject?: string;
  readonly object?: string;
  readonly name?: string;
  readonly since?: string;
  readonly until?: string;
  readonly action?: string;
  readonly kind?: AuditKind;
  readonly decision?: AuditDecision;
  readonly outcome?: AuditOutcome;
  readonly surface?: AuditSurface;
  readonly code?: string;
  readonly request?: string;
  readonly limit?: number;
  readonly everything?: true;
}

export type ExportFormat = 'jsonl' | 'ocsf' | 'csv';

export interface AuditExportFlags extends SearchFlags {
  readonly format: ExportFormat;
}

/** Prints matching records, as readable lines or as JSON. */
export async function runSearch(flags: SearchFlags): Promise<void> {
  const asText = flags.json
    ? (record: AuditRecord) => JSON.stringify(record)
    : (record: AuditRecord, named: NamedObjects) => recordLine(record, named);
  await forEachRecord(flags, 'search', (record, named) => print(asText(record, named)));
}

export async function runExport(flags: AuditExportFlags): Promise<void> {
  const { format } = flags;
  if (format === 'csv') print(formatCsv(COLUMNS, []));
  await forEachRecord(flags, 'export', (record) => print(EXPORTED[format](record)));
}

const EXPORTED: Readonly<Record<ExportFormat, (record: AuditRecord) => string>> = {
  jsonl: (record) => JSON.stringify(record),
  ocsf: (record) => JSON.stringify(ocsfEvent(record)),
  csv: (record) =>
    formatCsv(COLUMNS, [COLUMNS.map(({ name }) => cellOf(record, name))])
      .split('\r\n')
      .slice(1)
      .join('\r\n'),
};

const NUMERIC = ['rows', 'duration_us', 'objects_omitted', 'epoch', 'seq'] as const;
const TEXTS = [
  'ts',
  'writer',
  'kind',
  'request_id',
  'tenant',
  'subject',
  'chain',
  'surface',
  'action',
  'form',
  'objects',
  'decision',
  'code',
  'outcome',
  'statement_hmac',
  'standby',
  'detail',
] as const;
type ColumnName = (typeof NUMERIC)[number] | (typeof TEXTS)[number];

const COLUMNS: readonly { readonly name: ColumnName; readonly numeric: boolean }[] = [
  ...TEXTS.map((name) => ({ name, numeric: false })),
  ...NUMERIC.map((name) => ({ name, numeric: true })),
];

/** Text of a CSV cell. Lists are joined with spaces, which declared names cannot contain. */
function cellOf(record: AuditRecord, name: ColumnName): string | null {
  if (name === 'standby') {
    const { standby } = record;
    return standby === undefined ? null : `${standby.name} ${standby.as_of}`;
  }
  const value = record[name] ?? null;
  if (value === null) return null;
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : value.join(' ');
}

/** Calls `show` for the matching records of all chains, merged by time, after recording the search itself. */
async function forEachRecord(
  flags: SearchFlags,
  command: string,
  show: (record: AuditRecord, named: NamedObjects) => void,
): Promise<void> {
  const { name, ...asked } = queryOf(flags);
  const most = flags.limit ?? Number.POSITIVE_INFINITY;
  await withLog(flags, async (log) => {
    const names = name === undefined ? null : await fingerprintsIn(log, name);
    // The audit record of this search contains the name only as a fingerprint, never in plain text.
    await recordReading(log, command, { ...asked, ...(names !== null && { name: names.at(-1) ?? '' }) });
    const filter: AuditFilter = { ...asked, ...(names !== null && { fingerprints: names }) };
    const named: NamedObjects = new Map((names ?? []).map((object) => [object, name ?? '']));
    let shown = 0;
    for await (const record of log.search(filter, flags.everything === true)) {
      show(record, named);
      shown += 1;
      if (shown >= most) break;
    }
  });
}

/** Fingerprints of a name. @throws Failure if no key is available, because an empty result would then mean nothing */
async function fingerprintsIn(log: ReadLog, name: string): Promise<readonly string[]> {
  const { objects, missing } = await log.fingerprints(name);
  if (objects.length === 0)
    throw failure(
      'a name is looked for by the keys of its fingerprints (segment-N.key), and none is there: on another machine, or destroyed',
    );
  for (const chain of missing) note(`warning: no key of ${chain} is here: its names are not looked for`);
  return objects;
}

function queryOf(flags: SearchFlags): AuditQuery {
  const { subject, object, name, action, kind, decision, outcome, surface, code, request } = flags;
  const since = flags.since === undefined ? undefined : parseTime('--since', flags.since);
  const until = flags.until === undefined ? undefined : parseTime('--until', flags.until);
  return {
    ...(subject !== undefined && { subject }),
    ...(object !== undefined && { object }),
    ...(name !== undefined && { name }),
    ...(since !== undefined && { since }),
    ...(until !== undefined && { until }),
    ...(action !== undefined && { action }),
    ...(kind !== undefined && { kind }),
    ...(decision !== undefined && { decision }),
    ...(outcome !== undefined && { outcome }),
    ...(surface !== undefined && { surface }),
    ...(code !== undefined && { code }),
    ...(request !== undefined && { requestId: request }),
  };
}

const AGO = /^(\d{1,6})(s|m|h|d)$/;
const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Converts `2026-01-31`, `2026-01-31T12:00:00Z` or an age such as `90m` to RFC 3339. @throws Failure */
export function parseTime(flag: string, text: string): string {
  const [, count, unit] = AGO.exec(text) ?? [];
  const ago =
    unit === 's' || unit === 'm' || unit === 'h' || unit === 'd' ? Number(count) * UNITS[unit] : null;
  const ms = ago === null ? parseInstant(text) : Date.now() - ago;
  if (ms === null) throw wrongTime(flag, text);
  return instant(ms);
}

function wrongTime(flag: string, text: string): Failure {
  return usage(
    `${flag} takes a time such as 2026-01-31T12:00:00Z, a day, or 90m, 12h, 7d ago; not \`${text}\``,
  );
}

const SCHEMA = '1.5.0';

/**
 * Converts a record to an event of the Open Cybersecurity Schema Framework: Authentication for logins, Datastore
 * Activity for everything else.
 */
function ocsfEvent(record: AuditRecord): object {
  const login = record.action === 'login';
  const classId = login ? 3002 : 6005;
  const activity = login ? LOGON : (ACTIVITIES.get(record.action) ?? OTHER);
  const time = Date.parse(record.ts);
  const user = { type_id: 0, uid: record.subject ?? 'unknown', name: record.subject ?? 'unknown' };
  return {
    activity_id: activity.id,
    activity_name: activity.id === OTHER.id ? record.action : activity.name,
    category_uid: login ? 3 : 6,
    class_uid: classId,
    type_uid: 100 * classId + activity.id,
    time,
    severity_id: 1,
    ...statusOf(record),
    ...(record.code !== null && { status_code: record.code }),
    ...(record.duration_us !== null && { duration: Math.round(record.duration_us / 1_000) }),
    ...(record.rows !== null && { count: Math.max(1, record.rows) }),
    actor: { user, ...(record.chain.length > 1 && { invoked_by: record.chain.slice(0, -1).join(' > ') }) },
    ...(login && { user }),
    src_endpoint: { svc_name: record.surface },
    ...(!login && { database: { name: record.tenant, type: 'Relational', type_id: 1 } }),
    ...(record.objects.length > 0 && { resources: record.objects.map((name) => ({ name, type: 'entity' })) }),
    metadata: {
      version: SCHEMA,
      uid: `${record.writer}/${record.seq}`,
      correlation_uid: record.request_id,
      sequence: record.seq,
      log_name: record.writer,
      tenant_uid: record.tenant,
      product: { name: 'OSL Gateway', vendor_name: 'OSL', version: version() },
    },
    unmapped: unmappedFields(record),
  };
}

interface OcsfActivity {
  readonly id: number;
  readonly name: string;
}

const LOGON: OcsfActivity = { id: 1, name: 'Logon' };
const OTHER: OcsfActivity = { id: 99, name: 'Other' };
const QUERY: OcsfActivity = { id: 4, name: 'Query' };
const LIST: OcsfActivity = { id: 8, name: 'List' };
const ACTIVITIES: ReadonlyMap<string, OcsfActivity> = new Map([
  ['query', QUERY],
  ['prepare', QUERY],
  ['explain', QUERY],
  ['subscribe', QUERY],
  ['sample', { id: 1, name: 'Read' }],
  ['schema', LIST],
  ['map', LIST],
  ['catalog', LIST],
  ['publish', { id: 5, name: 'Write' }],
]);

function statusOf({ decision, outcome }: AuditRecord) {
  const failed =
    outcome === null
      ? decision !== 'allow' && decision !== null
      : outcome !== 'ok' && outcome !== 'truncated';
  const action =
    decision === null
      ? {}
      : { action_id: decision === 'deny' ? 2 : 1, action: decision === 'deny' ? 'Denied' : 'Allowed' };
  return {
    ...(failed ? { status_id: 2, status: 'Failure' } : { status_id: 1, status: 'Success' }),
    ...action,
  };
}

/** Fields without an equivalent in OCSF, which keep their own names. */
const UNMAPPED = [
  'kind',
  'form',
  'decision',
  'outcome',
  'rows',
  'versions',
  'statement_hmac',
  'objects_omitted',
  'epoch',
  'standby',
  'detail',
] as const;

function unmappedFields(record: AuditRecord): object {
  const given = UNMAPPED.filter((name) => record[name] !== undefined);
  return Object.fromEntries(given.map((name) => [name, record[name]]));
}

export interface TailFlags extends AuditFlags {
  readonly lines: number;
  readonly follow?: true;
}

export async function runTail(flags: TailFlags): Promise<void> {
  await withLog(flags, async (log) => {
    await recordReading(log, 'tail', { lines: flags.lines });
    const show = (record: AuditRecord): void =>
      print(flags.json ? JSON.stringify(record) : recordLine(record));
    const newest = await log.newest(flags.lines);
    newest.forEach(show);
    if (flags.follow) await follow(log, newest, show);
  });
}

async function follow(
  log: ReadLog,
  newest: readonly AuditRecord[],
  show: (record: AuditRecord) => void,
): Promise<void> {
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.stdout.once('close', () => stop.abort());
  await Promise.all(
    log.follow(newest, stop.signal).map(async (records) => {
      for await (const record of records) show(record);
    }),
  );
  if (process.stderr.isTTY) note('');
}

/** Maps fingerprints of objects to the name that was searched for. */
export type NamedObjects = ReadonlyMap<string, string>;

/** Formats a record as one line: time, result, action, caller, objects, row count, duration and request. */
export function recordLine(record: AuditRecord, named: NamedObjects = new Map()): string {
  const result = decisionIn(record) ?? record.outcome ?? record.kind;
  const parts = [
    record.ts,
    result.padEnd(9),
    (record.code ?? '').padEnd(5),
    `${record.surface} ${record.action}`.padEnd(14),
    who(record),
    record.objects.map((object) => shownObject(object, named)).join(','),
    amount(record),
    record.standby === undefined ? '' : `standby ${record.standby.name}`,
    record.duration_us === null ? '' : `${(record.duration_us / 1000).toFixed(1)} ms`,
    record.request_id,
  ];
  return visible(parts.filter((part) => part.trim() !== '' || part.length > 1).join('  '));
}

function shownObject(object: string, named: NamedObjects): string {
  const name = named.get(object);
  return name === undefined ? object.replace('osl.entities.', '') : `undeclared:${name}`;
}

/** Formats the number of rows; for an event, the number of requests that it counts, by status if recorded. */
function amount({ kind, rows, detail }: AuditRecord): string {
  if (rows === null) return '';
  if (kind !== 'event') return `${rows} rows`;
  const statuses = detail === undefined ? [] : Object.entries(statusesIn(detail));
  const each = statuses.map(([status, count]) => `${status} × ${String(count)}`).join(', ');
  return `${rows} requests${each === '' ? '' : ` (${each})`}`;
}

function statusesIn(detail: string): object {
  const said: unknown = JSON.parse(detail);
  const statuses = typeof said === 'object' && said !== null ? Reflect.get(said, 'statuses') : null;
  return typeof statuses === 'object' && statuses !== null ? statuses : {};
}

function who({ subject, chain }: AuditRecord): string {
  if (subject === null) return '-';
  return chain.length > 1 ? `${subject} for ${chain.slice(0, -1).join(' > ')}` : subject;
}
