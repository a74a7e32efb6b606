import { openCheckpoint, type ProvenCheckpoint, parseVerifierKey } from '../../audit/index.js';
import { rowDigest } from '../../src/ask/receipts/digests.js';
import { keysIn } from '../audit/log.js';
import { witnessedNotes } from '../audit/witness.js';
import { print, printJson, visible } from '../output.js';
import { readAnswer } from './answer-rows.js';
import { notHolding, type ProvenReceipt, provenReceipt, questionOf, saltOf } from './proven-record.js';

/**
 * Knowledge of a witness about the log of a receipt.
 *
 * - `same`: it keeps the checkpoint of the receipt.
 * - `later`: it keeps a later one. Whether that is of the same log is for `osl audit verify`, which has the records.
 * - `earlier`: its newest one is from before the record.
 * - `nothing`: it keeps none of this log.
 */
interface WitnessVerdict {
  readonly kind: 'same' | 'later' | 'earlier' | 'nothing';
  /** Time of the witness's newest checkpoint, RFC 3339; null if there is none, or it names no time. */
  readonly time: string | null;
}

/**
 * Asks a witness for the checkpoints that it keeps.
 *
 * @param place of the witness, as for `osl audit verify --witness`
 * @param seq number of the receipt's record
 * @throws Failure if it keeps another log of the same name
 */
async function witnessed(
  place: string,
  { origin, size, root }: ProvenCheckpoint,
  seq: number,
  keys: readonly string[],
): Promise<WitnessVerdict> {
  const trusted = keys.map(parseVerifierKey);
  const kept = (await witnessedNotes(place)).flatMap((note) => {
    const checkpoint = trusted.map((key) => openCheckpoint(note, key)).find((c) => c !== null);
    return checkpoint?.origin === origin ? [checkpoint] : [];
  });
  const same = kept.find((checkpoint) => checkpoint.size === size);
  if (same !== undefined && same.root.toString('base64') !== root)
    throw notHolding(`the witness has another log with ${size} records under this name`);
  const newest = kept.toSorted((a, b) => b.size - a.size)[0];
  if (newest === undefined) return { kind: 'nothing', time: null };
  const kind = same !== undefined ? 'same' : newest.size > seq ? 'later' : 'earlier';
  return { kind, time: newest.time };
}

export interface VerifyReceiptFlags {
  readonly key: string;
  readonly salt?: string;
  readonly rows?: string;
  readonly question?: string;
  readonly witness?: string;
  readonly json?: true;
}

/** Results of comparing a question and rows with a receipt. */
interface ReceiptComparison {
  readonly question: 'same' | 'not compared';
  readonly rows: 'same' | 'not compared';
}

/** Checks a receipt offline. @throws Failure if anything about it is wrong */
export async function runVerifyReceipt(file: string, flags: VerifyReceiptFlags): Promise<void> {
  const proven = provenReceipt(file, flags.key);
  const compared = await compare(proven, file, flags);
  const { record, checkpoint } = proven;
  const witness =
    flags.witness === undefined
      ? null
      : await witnessed(flags.witness, checkpoint, record.seq, keysIn(flags.key));
  if (flags.json) printJson({ valid: true, record, checkpoint, compared, witness });
  else for (const line of linesOf(proven, compared, witness)) print(visible(line));
}

async function compare(
  proven: ProvenReceipt,
  file: string,
  { salt, rows, question }: VerifyReceiptFlags,
): Promise<ReceiptComparison> {
  if (question !== undefined) questionOf(question, proven, saltOf(file, salt));
  if (rows !== undefined) await requireRows(rows, proven, saltOf(file, salt));
  return {
    question: question === undefined ? 'not compared' : 'same',
    rows: rows === undefined ? 'not compared' : 'same',
  };
}

async function requireRows(
  file: string,
  { record, receipt }: ProvenReceipt,
  salt: Uint8Array,
): Promise<void> {
  const answer = await readAnswer(file);
  if (answer.requestId !== record.request_id || answer.rowCount !== record.rows)
    throw notHolding('the answer is that of another request, or has another number of rows');
  const digest = rowDigest(receipt.order, salt, answer.columns);
  for await (const row of answer.rows()) digest.add(row);
  if (digest.digest() !== receipt.rows) throw notHolding('the rows are not those of the answer');
}

function* linesOf(
  { record, receipt, checkpoint }: ProvenReceipt,
  compared: ReceiptComparison,
  witness: WitnessVerdict | null,
): Generator<string> {
  const { subject, chain, ts, surface, versions, objects, rows, standby, seq } = record;
  const { masked, masked_omitted, truncated, as_of } = receipt;
  const { origin, size, time } = checkpoint;
  const through = chain.length > 1 ? ` through ${chain.slice(1).join(', ')}` : '';
  const more = masked_omitted > 0 ? `, and ${masked_omitted} more` : '';
  const doubt = witness === null ? '' : doubtOf(witness);
  yield `valid${doubt}: record ${seq} of ${origin}, signed at ${time ?? '?'} with ${size} records`;
  yield `  caller    ${chain[0] ?? subject ?? '?'}${through}`;
  yield `  answered  ${ts}, over ${surface}: ${rows ?? '?'} rows${truncated ? ', truncated' : ''}`;
  const from = standby === undefined ? '' : `, from standby ${standby.name}`;
  if (as_of !== null) yield `  as of     ${as_of}${from}`;
  yield `  versions  manifest ${versions?.manifest ?? '?'}, policy ${versions?.policy ?? '?'}`;
  yield `  objects   ${objects.join(', ')}`;
  yield `  masked    ${masked.length === 0 ? 'no column' : masked.join(', ')}${more}`;
  yield `  question  ${compared.question}`;
  yield `  rows      ${compared.rows}`;
  if (witness !== null) yield `  witness   ${WITNESS_LINES[witness.kind]}`;
}

function doubtOf({ kind, time }: WitnessVerdict): string {
  if (kind === 'same' || kind === 'later') return '';
  return `, but not witnessed${time === null ? '' : ` since ${time}`}`;
}

const WITNESS_LINES: Readonly<Record<WitnessVerdict['kind'], string>> = {
  same: 'keeps this checkpoint',
  later: 'keeps a later checkpoint: osl audit verify --witness tells whether it is of this log',
  earlier: 'keeps no checkpoint with this record',
  nothing: 'keeps no checkpoint of this log',
};
