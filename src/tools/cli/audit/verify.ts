import { readFileSync } from 'node:fs';
import { type AuditVerdict, verifyAuditLog } from '../../../../policy/audit/index.js';
import { EXIT } from '../exit.js';
import { print, printJson } from '../output.js';
import { type AuditFlags, auditDirectory } from './directory.js';

export interface VerifyFlags extends AuditFlags {
  readonly key?: string;
  readonly anchor?: string;
  /** Seconds. */
  readonly maxAnchorAge?: number;
}

export async function runVerify(flags: VerifyFlags): Promise<void> {
  const dir = auditDirectory(flags);
  const verdict = await verifyAuditLog(dir, {
    ...(flags.key !== undefined && { verifierKey: readFileSync(flags.key, 'utf8') }),
    ...(flags.anchor !== undefined && { anchor: readFileSync(flags.anchor, 'utf8') }),
  });
  const stale = isStale(verdict, flags.maxAnchorAge);
  if (flags.json) printJson({ dir, ...verdict, anchor_stale: stale });
  else print(describe(verdict, dir, stale, flags.key !== undefined));
  process.exitCode = exitOf(verdict, stale);
}

function isStale({ anchor }: AuditVerdict, maxSeconds: number | undefined): boolean {
  if (maxSeconds === undefined) return false;
  return anchor?.ageMs === null || anchor === null || anchor.ageMs > maxSeconds * 1000;
}

function exitOf(verdict: AuditVerdict, stale: boolean): number {
  if (verdict.integrity === 'damaged') return EXIT.damaged;
  if (verdict.completeness !== 'complete') return EXIT.incomplete;
  return stale ? EXIT.staleAnchor : EXIT.ok;
}

function describe(verdict: AuditVerdict, dir: string, stale: boolean, outsideKey: boolean): string {
  const { problem, tornBytes, openDecisions } = verdict;
  const good = problem === null;
  const lines = [
    good ? `the chain holds: ${verdict.records} records in ${dir}` : `the chain does NOT hold: ${dir}`,
    `  integrity     ${verdict.integrity}`,
    `  completeness  ${verdict.completeness}`,
    `  anchor        ${anchorText(verdict)}${stale ? ', which is too old' : ''}`,
    `  key           ${outsideKey ? 'the given one' : "the directory's own (--key gives one kept elsewhere)"}`,
  ];
  lines.push(...recoveredLines(verdict));
  if (openDecisions > 0) lines.push(`  under way     ${openDecisions} allowed requests without outcome`);
  if (tornBytes > 0) lines.push(`  torn tail     ${tornBytes} bytes of a write that was never acknowledged`);
  if (problem !== null) {
    lines.push(`  problem       ${problem.kind}: ${problem.message}`);
    lines.push(`                ${problem.segment}:${problem.offset}, record ${problem.seq}`);
  }
  return lines.join('\n');
}

const MOST_RECOVERIES = 10;

/** What nothing vouched for when it was found, newest first. */
function recoveredLines({ recovered }: AuditVerdict): readonly string[] {
  const lines = recovered.toReversed().map(({ epoch, from, to }) => {
    const records = to === from ? 'no record' : `records ${from} to ${to - 1}`;
    return `  recovered     ${records} after a stop out of order, under no checkpoint then (opening ${epoch})`;
  });
  const more = lines.length - MOST_RECOVERIES;
  return more > 0
    ? [...lines.slice(0, MOST_RECOVERIES), `                and ${more} more, with --json`]
    : lines;
}

function anchorText({ anchor, unanchored }: AuditVerdict): string {
  if (anchor === null) return 'none';
  const age = anchor.ageMs === null ? 'of unknown age' : `${duration(anchor.ageMs)} old`;
  const rest = unanchored === 0 ? '' : `; ${unanchored} newer records are not covered`;
  return `signed checkpoint of ${anchor.size} records, ${age}${rest}`;
}

function duration(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1000));
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7_200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3_600)} h`;
}
