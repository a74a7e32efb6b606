import type { AuditRecord } from '../../audit/index.js';
import { version } from '../../src/base/package-root.js';

const SCHEMA = '1.5.0';

/**
 * Converts a record to an event of the Open Cybersecurity Schema Framework: Authentication for logins, Datastore
 * Activity for everything else.
 */
export function ocsfEvent(record: AuditRecord): object {
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

/** Fields without an equivalent in the schema; they keep their own names. */
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
