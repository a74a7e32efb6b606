import { type AuditRecord, decisionIn } from '../../audit/index.js';
import { note, print, visible } from '../output.js';
import { type AuditFlags, recordReading, withLog } from './log.js';
import type { ReadLog } from './table.js';

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

/** Formats a record as one line: time, result, action, caller, objects and request. */
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

/** Number of rows. For an event that counts requests: their number, by status if the statuses were recorded. */
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
