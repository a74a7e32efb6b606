import { readFileSync } from 'node:fs';
import {
  type AuditProof,
  type AuditVerdict,
  checkProof,
  checkpointNotes,
  type InclusionVerdict,
  type LogSource,
  type ProveOptions,
  prove,
  type VerifyProgress,
  verifyAuditLog,
} from '../../audit/index.js';
import { isEndedChain } from '../../src/service/process-files.js';
import { EXIT, failure, usage } from '../exit.js';
import { note, print, printJson } from '../output.js';
import {
  type AuditFlags,
  chainName,
  keysIn,
  nameOfKey,
  recordReading,
  withLog,
  witnessedNotes,
} from './log.js';

export interface VerifyFlags extends AuditFlags {
  readonly key?: string;
  readonly anchor?: string;
  readonly witness?: string;
  /** Maximum age of the newest checkpoint in seconds. */
  readonly maxAnchorAge?: number;
}

export function runVerify(flags: VerifyFlags): Promise<void> {
  return withLog(flags, ({ chains }) => verifyChains(flags, chains));
}

interface NamedChain {
  readonly source: LogSource;
  readonly name: string | null;
}

async function verifyChains(flags: VerifyFlags, sources: readonly LogSource[]): Promise<void> {
  const chains = await Promise.all(
    sources.map(async (source): Promise<NamedChain> => ({ source, name: await chainName(source) })),
  );
  const keys = flags.key === undefined ? null : keysIn(flags.key);
  const witnessed = flags.witness === undefined ? [] : await witnessedNotes(flags.witness);
  const anchors = [...(flags.anchor === undefined ? [] : notesIn(flags.anchor)), ...witnessed];
  const checked: ChainResult[] = [];
  for (const chain of chains) {
    const single = chains.length === 1;
    const verifierKey = keys === null ? null : single ? keys.join('\n') : keyOf(chain, keys);
    // A given checkpoint that belongs to no chain is checked against the first chain, where it fails.
    const strays = chain === chains[0] ? anchors.slice(0, anchors.length - witnessed.length) : [];
    const own = anchors.filter(
      (anchor) => isOf(anchor, chain) || (strays.includes(anchor) && !chains.some((c) => isOf(anchor, c))),
    );
    const verdict = await verifyAuditLog(chain.source, {
      ...(verifierKey !== null && { verifierKey }),
      anchors: own,
      progress: progressOn(process.stderr),
    });
    checked.push({
      dir: chain.source.place,
      verdict,
      stale: !isEndedChain(chain.source.place) && isStale(verdict, flags.maxAnchorAge),
    });
  }
  const unknown = chains.length === 1 ? [] : (keys ?? []).filter((key) => !chains.some((c) => isOf(key, c)));
  const unwitnessed = witnessed.filter((note) => !chains.some((c) => isOf(note, c)));
  const missing = [...new Set([...unknown.map(nameOfKey), ...unwitnessed.map(originOf)])];
  if (flags.json) printJson(jsonOf(checked, missing));
  else print([...checked.map((c) => describe(c, keys !== null)), ...missing.map(missingText)].join('\n'));
  process.exitCode = worst([
    ...checked.map(({ verdict, stale }) => exitOf(verdict, stale)),
    ...missing.map(() => EXIT.incomplete),
  ]);
}

function progressOn(terminal: NodeJS.WriteStream): (progress: VerifyProgress) => void {
  let last = 0;
  return ({ records, segments, allSegments }) => {
    const now = performance.now();
    if (!terminal.isTTY || (now - last < 100 && segments < allSegments)) return;
    last = now;
    const text = `${records} records, ${segments} of ${allSegments} segments`;
    terminal.write(segments < allSegments ? `\r${text}` : `\r${' '.repeat(text.length)}\r`);
  };
}

function originOf(note: string): string {
  return note.slice(0, note.indexOf('\n'));
}

/**
 * Reads the checkpoints in a file: a single one, or several, each followed by an empty line.
 *
 * @throws Failure if the file contains anything else, or nothing: the log would then be compared with too little
 */
function notesIn(file: string): readonly string[] {
  const text = `${readFileSync(file, 'utf8').trimEnd()}\n\n`;
  const notes = checkpointNotes(text);
  if (notes.map((note) => `${note}\n`).join('') !== text)
    throw usage(`${file} must contain checkpoints of an audit log, each followed by an empty line`);
  return notes;
}

interface ChainResult {
  readonly dir: string;
  readonly verdict: AuditVerdict;
  readonly stale: boolean;
}

/** Returns the result as JSON: the fields of the first chain, the others in `workers`, absent ones in `missing`. */
function jsonOf([own, ...workers]: readonly ChainResult[], missing: readonly string[]): object {
  const told = (chain: ChainResult | undefined) => ({
    dir: chain?.dir,
    ...chain?.verdict,
    anchor_stale: chain?.stale,
  });
  if (workers.length === 0 && missing.length === 0) return told(own);
  return { ...told(own), workers: workers.map(told), missing };
}

function keyOf(chain: NamedChain, keys: readonly string[]): string {
  const key = keys.find((line) => isOf(line, chain));
  if (key !== undefined) return key;
  throw usage(`none of the given keys is of the chain in ${chain.source.place}: add its checkpoint.vkey`);
}

/** True if `text` belongs to the chain: keys and checkpoints begin with its name. */
function isOf(text: string, { name }: NamedChain): boolean {
  return name !== null && (text.startsWith(`${name}+`) || text.startsWith(`${name}\n`));
}

function missingText(name: string): string {
  return `a chain is missing: a key or a witness knows ${name}, and no such chain is there`;
}

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

function describe({ verdict, dir, stale }: ChainResult, outsideKey: boolean): string {
  const { problem, tornBytes, openDecisions, sync } = verdict;
  const good = problem === null;
  const lines = [
    good ? `the chain holds: ${verdict.records} records in ${dir}` : `the chain does NOT hold: ${dir}`,
    `  integrity     ${verdict.integrity}`,
    `  completeness  ${verdict.completeness}`,
    `  anchor        ${anchorText(verdict)}${stale ? ', which is too old' : ''}`,
    `  key           ${outsideKey ? 'the given one' : "the directory's own (--key gives one kept elsewhere)"}`,
  ];
  if (verdict.kept !== null) lines.push(`  kept          ${keptText(verdict.kept)}`);
  lines.push(...recoveredLines(verdict));
  if (openDecisions > 0) lines.push(`  under way     ${openDecisions} allowed requests without outcome`);
  if (sync === 'kernel')
    lines.push('  sync          kernel: a power failure may have lost the records of its last 50 ms');
  if (tornBytes > 0) lines.push(`  torn tail     ${tornBytes} bytes ${TORN[sync]}`);
  if (problem !== null) {
    lines.push(`  problem       ${problem.kind}: ${problem.message}`);
    lines.push(`                ${problem.segment}:${problem.offset}, record ${problem.seq}`);
  }
  return lines.join('\n');
}

function keptText({ from, since }: NonNullable<AuditVerdict['kept']>): string {
  return `from record ${from} on; what stood before was signed, and is kept no more, since ${since ?? '?'}`;
}

const TORN = {
  disk: 'of a write that was never acknowledged',
  kernel: 'that a power failure left incomplete',
} as const satisfies Record<AuditVerdict['sync'], string>;

const MOST_RECOVERIES = 10;

/** Lists the ranges of records that no checkpoint covered when they were recovered, newest first. */
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

/** Checks a proof against all keys: it may belong to any of the chains, and each has its own key. */
function checkedBy(text: string, keys: readonly string[]): InclusionVerdict {
  const verdicts = keys.map((key) => checkProof(text, key));
  const [first = checkProof(text, '')] = verdicts;
  return verdicts.find(({ ok }) => ok) ?? first;
}

function ownKeys(flags: AuditFlags): Promise<readonly string[]> {
  return withLog(flags, async ({ chains }) => {
    const keys = await Promise.all(chains.map((chain) => chain.verifierKey()));
    return keys.filter((key) => key !== null);
  });
}

const EACH_PROOF = /^(?=c2sp\.org\/tlog-proof@v1$)/m;

export async function runProve(requestId: string, flags: AuditFlags & ProveOptions): Promise<void> {
  const proofs: AuditProof[] = [];
  await withLog(flags, async (log) => {
    await recordReading(log, 'prove', { requestId });
    for (const chain of log.chains) proofs.push(...(await prove(chain, requestId, flags)));
  });
  if (proofs.length === 0) {
    throw failure(
      `no signed checkpoint covers a record of request ${requestId}: a new record is covered within a second; is the ID right? (osl audit search --request ${requestId})`,
    );
  }
  if (flags.json) printJson(proofs);
  else process.stdout.write(proofs.map((proof) => proof.text).join(''));
}

/** Verifies the output of `osl audit prove`. With `--key`, the log itself is not needed. */
export async function runCheck(file: string, flags: AuditFlags & { readonly key?: string }): Promise<void> {
  const keys = flags.key === undefined ? await ownKeys(flags) : keysIn(flags.key);
  const texts = readFileSync(file === '-' ? 0 : file, 'utf8').split(EACH_PROOF);
  const verdicts = texts.map((text) => checkedBy(text, keys));
  if (flags.json) printJson(verdicts);
  for (const verdict of verdicts) {
    if (!verdict.ok) {
      note(`error: not proved: ${verdict.reason}`);
      process.exitCode = EXIT.failed;
    } else if (!flags.json) {
      const { seq, kind, request_id } = verdict.record;
      const { origin, size, time } = verdict.checkpoint;
      print(
        `record ${seq} (${kind} of ${request_id}) is in ${origin}, signed at ${time ?? '?'} with ${size} records`,
      );
    }
  }
}
