import { readFileSync } from 'node:fs';
import { type AuditVerdict, verifyAuditLog } from '../../../../policy/audit/index.js';
import { EXIT, usage } from '../exit.js';
import { print, printJson } from '../output.js';
import {
  type AuditFlags,
  auditChains,
  auditDirectory,
  chainName,
  keysIn,
  nameOfKey,
  VERIFIER_KEY_FILE,
} from './directory.js';

export interface VerifyFlags extends AuditFlags {
  readonly key?: string;
  readonly anchor?: string;
  /** Seconds. */
  readonly maxAnchorAge?: number;
}

export async function runVerify(flags: VerifyFlags): Promise<void> {
  const dir = auditDirectory(flags);
  const chains = auditChains(dir);
  const keys = flags.key === undefined ? null : keysIn(flags.key);
  const anchor = flags.anchor === undefined ? null : readFileSync(flags.anchor, 'utf8');
  const checked: Checked[] = [];
  for (const chain of chains) {
    const single = chains.length === 1;
    const verifierKey = keys === null ? null : single ? keys.join('\n') : keyOf(chain, keys);
    // One that is of no chain here is held against that of the directory, which it does not fit.
    const anchored = anchor !== null && chain === (chains.find((c) => isOf(anchor, c)) ?? dir);
    const verdict = await verifyAuditLog(chain, {
      ...(verifierKey !== null && { verifierKey }),
      ...(anchored && { anchor }),
    });
    checked.push({ dir: chain, verdict, stale: isStale(verdict, flags.maxAnchorAge) });
  }
  const missing = chains.length === 1 ? [] : (keys ?? []).filter((key) => !chains.some((c) => isOf(key, c)));
  if (flags.json) printJson(jsonOf(checked, missing));
  else print([...checked.map((c) => describe(c, keys !== null)), ...missing.map(missingText)].join('\n'));
  process.exitCode = worst([
    ...checked.map(({ verdict, stale }) => exitOf(verdict, stale)),
    ...missing.map(() => EXIT.incomplete),
  ]);
}

/** One chain of the log, judged. */
interface Checked {
  readonly dir: string;
  readonly verdict: AuditVerdict;
  readonly stale: boolean;
}

/** The chain of the directory is told of as it would be alone; those of workers stand beside it. */
function jsonOf([own, ...workers]: readonly Checked[], missing: readonly string[]): object {
  const told = (chain: Checked | undefined) => ({
    dir: chain?.dir,
    ...chain?.verdict,
    anchor_stale: chain?.stale,
  });
  if (workers.length === 0 && missing.length === 0) return told(own);
  return { ...told(own), workers: workers.map(told), missing: missing.map(nameOfKey) };
}

/** Of the keys that were kept elsewhere, that of one chain. @throws Failure */
function keyOf(chain: string, keys: readonly string[]): string {
  const key = keys.find((line) => isOf(line, chain));
  if (key !== undefined) return key;
  throw usage(`none of the given keys is of the chain in ${chain}: add its ${VERIFIER_KEY_FILE}`);
}

/** Keys and checkpoints begin with the name of their chain. */
function isOf(text: string, chain: string): boolean {
  const name = chainName(chain);
  return name !== null && (text.startsWith(`${name}+`) || text.startsWith(`${name}\n`));
}

function missingText(key: string): string {
  return `a chain is missing: a key is given for ${nameOfKey(key)}, and no such chain is there`;
}

/** Of several verdicts the gravest. */
function worst(exits: readonly number[]): number {
  const order = [EXIT.damaged, EXIT.incomplete, EXIT.staleAnchor];
  return order.find((exit) => exits.includes(exit)) ?? EXIT.ok;
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

function describe({ verdict, dir, stale }: Checked, outsideKey: boolean): string {
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
