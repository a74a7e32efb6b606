import { readFileSync } from 'node:fs';
import { type AuditRecord, checkProof, type ProofVerdict, type ReceiptDigests } from '../../audit/index.js';
import { questionDigest, rowDigest } from '../../src/ask/receipts/digests.js';
import { fieldsIn } from '../../src/surfaces/rest/bodies/json.js';
import { queryRequestIn } from '../../src/surfaces/rest/bodies/query.js';
import { keysIn } from '../audit/log.js';
import { witnessedNotes } from '../audit/verify.js';
import { EXIT, Failure, usage } from '../exit.js';
import { print, printJson, visible } from '../output.js';
import { answerRows } from './answer-rows.js';

export interface VerifyReceiptFlags {
  readonly key: string;
  readonly salt?: string;
  readonly rows?: string;
  readonly question?: string;
  readonly witness?: string;
  readonly json?: true;
}

/** What was compared with a receipt, beside its proof. */
interface Comparison {
  readonly question: 'same' | 'not compared';
  readonly rows: 'same' | 'not compared';
  readonly witness: 'has it' | 'does not have it' | 'not asked';
}

/** Checks a receipt offline. @throws Failure if anything about it is wrong */
export async function runVerifyReceipt(file: string, flags: VerifyReceiptFlags): Promise<void> {
  const text = readFileSync(file, 'utf8');
  const { record, checkpoint } = proven(text, keysIn(flags.key));
  const { receipt } = record;
  if (receipt === undefined) throw wrong('its record is not that of an answer with a receipt');
  const compared = { ...(await compare(receipt, file, flags)), witness: await witnessed(text, flags) };
  if (flags.json) printJson({ valid: true, record, checkpoint, compared });
  else for (const line of linesOf(record, receipt, checkpoint, compared)) print(visible(line));
  if (compared.witness === 'does not have it') process.exitCode = EXIT.incomplete;
}

type Proven = Extract<ProofVerdict, { readonly ok: true }>;

function proven(text: string, keys: readonly string[]): Proven {
  const verdicts = keys.map((key) => checkProof(text, key));
  const found = verdicts.find((verdict) => verdict.ok);
  if (found !== undefined) return found;
  const [first] = verdicts;
  throw wrong(first === undefined ? 'there is no key to check it with' : reasonOf(first));
}

function reasonOf(verdict: ProofVerdict): string {
  return verdict.ok ? '' : verdict.reason;
}

function wrong(reason: string): Failure {
  return new Failure(EXIT.failed, `error: the receipt does not hold: ${reason}`);
}

async function compare(
  receipt: ReceiptDigests,
  file: string,
  { salt: saltFile = `${file}.salt`, rows, question }: VerifyReceiptFlags,
): Promise<Pick<Comparison, 'question' | 'rows'>> {
  if (rows === undefined && question === undefined) return { question: 'not compared', rows: 'not compared' };
  const salt = saltIn(saltFile);
  if (question !== undefined) {
    const { body, parameters } = queryRequestIn(fieldsIn(readFileSync(question)));
    if (questionDigest(salt, body, parameters) !== receipt.question)
      throw wrong('the question is not the one that was answered');
  }
  if (rows !== undefined) {
    const digest = rowDigest(receipt.order, salt);
    for await (const row of answerRows(rows)) digest.add(row);
    if (digest.digest() !== receipt.rows) throw wrong('the rows are not those of the answer');
  }
  return {
    question: question === undefined ? 'not compared' : 'same',
    rows: rows === undefined ? 'not compared' : 'same',
  };
}

function saltIn(file: string): Buffer {
  try {
    return Buffer.from(readFileSync(file, 'utf8').trim(), 'base64url');
  } catch {
    throw usage(`--rows and --question need the salt that only the caller got, and ${file} cannot be read`);
  }
}

async function witnessed(text: string, { witness }: VerifyReceiptFlags): Promise<Comparison['witness']> {
  if (witness === undefined) return 'not asked';
  const body = bodyOf(text.slice(text.indexOf('\n\n') + 2));
  const notes = await witnessedNotes(witness);
  return notes.some((note) => bodyOf(note) === body) ? 'has it' : 'does not have it';
}

/** The signed text of a checkpoint, without its signatures. */
function bodyOf(note: string): string {
  return note.slice(0, note.indexOf('\n\n'));
}

function* linesOf(
  { subject, chain, ts, surface, versions, objects, rows, seq, outcome }: AuditRecord,
  { masked, masked_omitted }: ReceiptDigests,
  { origin, size, time }: Proven['checkpoint'],
  compared: Comparison,
): Generator<string> {
  const through = chain.length > 1 ? ` through ${chain.slice(1).join(', ')}` : '';
  const more = masked_omitted > 0 ? `, and ${masked_omitted} more` : '';
  yield `valid: record ${seq} of ${origin}, signed at ${time ?? '?'} with ${size} records`;
  yield `  caller    ${chain[0] ?? subject ?? '?'}${through}`;
  yield `  answered  ${ts}, over ${surface}: ${rows ?? '?'} rows${outcome === 'truncated' ? ', truncated' : ''}`;
  yield `  versions  manifest ${versions?.manifest ?? '?'}, policy ${versions?.policy ?? '?'}`;
  yield `  objects   ${objects.join(', ')}`;
  yield `  masked    ${masked.length === 0 ? 'nothing' : masked.join(', ')}${more}`;
  yield `  question  ${compared.question}`;
  yield `  rows      ${compared.rows}`;
  yield `  witness   ${WITNESS[compared.witness]}`;
}

const WITNESS = {
  'has it': 'has this checkpoint',
  'does not have it': 'does not have this checkpoint: get the receipt again once it has',
  'not asked': 'not asked (--witness)',
} as const satisfies Record<Comparison['witness'], string>;
