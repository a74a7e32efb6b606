import type {
  AuditDecision,
  AuditFilter,
  AuditKind,
  AuditOutcome,
  AuditRecord,
  AuditSurface,
} from '../../../../policy/audit/index.js';
import { formatCsv } from '../csv.js';
import { print } from '../output.js';
import { type AuditFlags, onRecord, withLog } from './log.js';
import { ocsfOf } from './ocsf.js';
import { recordLine } from './tail.js';
import { timeOf } from './time.js';

export interface SearchFlags extends AuditFlags {
  readonly subject?: string;
  readonly object?: string;
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

export interface ExportFlags extends SearchFlags {
  readonly format: ExportFormat;
}

/** Shows what was found, for people or as the records that they are. */
export async function runSearch(flags: SearchFlags): Promise<void> {
  const asText = flags.json ? (record: AuditRecord) => JSON.stringify(record) : recordLine;
  await each(flags, 'search', (record) => print(asText(record)));
}

export async function runExport(flags: ExportFlags): Promise<void> {
  const { format } = flags;
  if (format === 'csv') print(formatCsv(COLUMNS, []));
  await each(flags, 'export', (record) => print(EXPORTED[format](record)));
}

const EXPORTED: Readonly<Record<ExportFormat, (record: AuditRecord) => string>> = {
  jsonl: (record) => JSON.stringify(record),
  ocsf: (record) => JSON.stringify(ocsfOf(record)),
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
  'detail',
] as const;
type ColumnName = (typeof NUMERIC)[number] | (typeof TEXTS)[number];

const COLUMNS: readonly { readonly name: ColumnName; readonly numeric: boolean }[] = [
  ...TEXTS.map((name) => ({ name, numeric: false })),
  ...NUMERIC.map((name) => ({ name, numeric: true })),
];

/** Lists are written with a space in between: no name has one that policy or manifest declare. */
function cellOf(record: AuditRecord, name: ColumnName): string | null {
  const value = record[name] ?? null;
  if (value === null) return null;
  return typeof value === 'string' ? value : typeof value === 'number' ? String(value) : value.join(' ');
}

/** Finds in all chains; records of several are merged by time. */
async function each(flags: SearchFlags, command: string, show: (record: AuditRecord) => void): Promise<void> {
  const filter = filterOf(flags);
  const most = flags.limit ?? Number.POSITIVE_INFINITY;
  await withLog(flags, async (log) => {
    await onRecord(log, command, { ...filter });
    let shown = 0;
    for await (const record of log.search(filter, flags.everything === true)) {
      show(record);
      shown += 1;
      if (shown >= most) break;
    }
  });
}

function filterOf(flags: SearchFlags): AuditFilter {
  const { subject, object, action, kind, decision, outcome, surface, code, request } = flags;
  const since = flags.since === undefined ? undefined : timeOf('--since', flags.since);
  const until = flags.until === undefined ? undefined : timeOf('--until', flags.until);
  return {
    ...(subject !== undefined && { subject }),
    ...(object !== undefined && { object }),
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
