import { type AuditRecord, readRecords } from '../../../../policy/audit/index.js';
import { note, print, visible } from '../output.js';
import { type AuditFlags, auditChains, auditDirectory } from './directory.js';
import { onRecord } from './on-record.js';

export interface TailFlags extends AuditFlags {
  readonly lines: number;
  readonly follow?: true;
}

export async function runTail(flags: TailFlags): Promise<void> {
  const dir = auditDirectory(flags);
  await onRecord(dir, 'tail', { lines: flags.lines });
  const show = (record: AuditRecord): void => print(flags.json ? JSON.stringify(record) : recordLine(record));
  const chains = await Promise.all(auditChains(dir).map((chain) => lastOf(chain, flags.lines)));
  const newest = chains
    .flatMap(({ records }) => records)
    .sort((a, b) => (a.ts < b.ts ? -1 : a.ts > b.ts ? 1 : 0));
  if (flags.lines > 0) newest.slice(-flags.lines).forEach(show);
  if (!flags.follow) return;
  const stop = new AbortController();
  process.once('SIGINT', () => stop.abort());
  process.stdout.once('close', () => stop.abort());
  const { signal } = stop;
  await Promise.all(
    chains.map(async ({ chain, next }) => {
      for await (const record of readRecords(chain, { from: next, follow: true, signal })) show(record);
    }),
  );
  if (process.stderr.isTTY) note('');
}

/** The last `count` records of a chain, and the number of the one after. */
async function lastOf(chain: string, count: number) {
  let records: AuditRecord[] = [];
  let next = 0;
  for await (const record of readRecords(chain)) {
    next = record.seq + 1;
    records.push(record);
    if (records.length > 2 * count + 64) records = records.slice(records.length - count);
  }
  return { chain, records: count === 0 ? [] : records.slice(-count), next };
}

/** One line: when, what became of it, who, what, and the request. */
export function recordLine(record: AuditRecord): string {
  const result = record.decision ?? record.outcome ?? record.kind;
  const parts = [
    record.ts,
    result.padEnd(9),
    (record.code ?? '').padEnd(5),
    `${record.surface} ${record.action}`.padEnd(14),
    who(record),
    record.objects.map((name) => name.replace('osl.entities.', '')).join(','),
    amount(record),
    record.duration_us === null ? '' : `${(record.duration_us / 1000).toFixed(1)} ms`,
    record.request_id,
  ];
  return visible(parts.filter((part) => part.trim() !== '' || part.length > 1).join('  '));
}

/** Of a record that counts requests, how many there were, and with which status where it says so. */
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
