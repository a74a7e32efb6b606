import { readFileSync } from 'node:fs';
import { type AuditRecord, checkProof, type ProofVerdict, type ReceiptDigests } from '../../audit/index.js';
import { questionDigest, rowDigest } from '../../src/ask/receipts/digests.js';
import { fieldsIn } from '../../src/surfaces/rest/bodies/json.js';
import { queryRequestIn } from '../../src/surfaces/rest/bodies/query.js';
import { keysIn } from '../audit/log.js';
import { EXIT, Failure, usage } from '../exit.js';
import { print, printJson, visible } from '../output.js';
import { readAnswer } from './answer-rows.js';

export interface VerifyReceiptFlags {
  readonly key: string;
  readonly salt?: string;
  readonly rows?: string;
  readonly question?: string;
  readonly json?: true;
}

/** What was compared with a receipt, beside its proof. */
interface Comparison {
  readonly question: 'same' | 'not compared';
  readonly rows: 'same' | 'not compared';
}

/** Checks a receipt offline. @throws Failure if anything about it is wrong */
export async function runVerifyReceipt(file: string, flags: VerifyReceiptFlags): Promise<void> {
  const { record, checkpoint } = proven(readFileSync(file, 'utf8'), keysIn(flags.key));
  const { receipt } = record;
  if (receipt === undefined) throw wrong('its record is not that of an answer with a receipt');
  const compared = await compare(record, receipt, file, flags);
  if (flags.json) printJson({ valid: true, record, checkpoint, compared });
  else for (const line of linesOf(record, receipt, checkpoint, compared)) print(visible(line));
}

type Proven = Extract<ProofVerdict, { readonly ok: true }>;

function proven(text: string, keys: readonly string[]): Proven {
  let reason = 'there is no key to check it with';
  for (const key of keys) {
    const verdict = checkProof(text, key);
    if (verdict.ok) return verdict;
    ({ reason } = verdict);
  }
  throw wrong(reason);
}

function wrong(reason: string): Failure {
  return new Failure(EXIT.failed, `error: the receipt does not hold: ${reason}`);
}

async function compare(
  record: AuditRecord,
  receipt: ReceiptDigests,
  file: string,
  { salt: saltFile = `${file}.salt`, rows, question }: VerifyReceiptFlags,
): Promise<Comparison> {
  if (rows === undefined && question === undefined) return { question: 'not compared', rows: 'not compared' };
  const salt = saltIn(saltFile);
  if (question !== undefined) {
    const { body, parameters } = queryRequestIn(fieldsIn(readFileSync(question)));
    if (questionDigest(salt, body, parameters) !== receipt.question)
      throw wrong('the question is not the one that was answered');
  }
  if (rows !== undefined) await requireRows(rows, record, receipt, salt);
  return {
    question: question === undefined ? 'not compared' : 'same',
    rows: rows === undefined ? 'not compared' : 'same',
  };
}

async function requireRows(
  file: string,
  { request_id, rows }: AuditRecord,
  receipt: ReceiptDigests,
  salt: Uint8Array,
): Promise<void> {
  const answer = await readAnswer(file);
  if (answer.requestId !== request_id || answer.rowCount !== rows)
    throw wrong('the answer is that of another request, or has another number of rows');
  const digest = rowDigest(receipt.order, salt, answer.columns);
  for await (const row of answer.rows()) digest.add(row);
  if (digest.digest() !== receipt.rows) throw wrong('the rows are not those of the answer');
}

function saltIn(file: string): Buffer {
  try {
    return Buffer.from(readFileSync(file, 'utf8').trim(), 'base64url');
  } catch {
    throw usage(`--rows and --question need the salt that only the caller got, and ${file} cannot be read`);
  }
}

function* linesOf(
  { subject, chain, ts, surface, versions, objects, rows, seq }: AuditRecord,
  { masked, masked_omitted, truncated, as_of }: ReceiptDigests,
  { origin, size, time }: Proven['checkpoint'],
  compared: Comparison,
): Generator<string> {
  const through = chain.length > 1 ? ` through ${chain.slice(1).join(', ')}` : '';
  const more = masked_omitted > 0 ? `, and ${masked_omitted} more` : '';
  yield `valid: record ${seq} of ${origin}, signed at ${time ?? '?'} with ${size} records`;
  yield `  caller    ${chain[0] ?? subject ?? '?'}${through}`;
  yield `  answered  ${ts}, over ${surface}: ${rows ?? '?'} rows${truncated ? ', truncated' : ''}`;
  if (as_of !== null) yield `  as of     ${as_of}`;
  yield `  versions  manifest ${versions?.manifest ?? '?'}, policy ${versions?.policy ?? '?'}`;
  yield `  objects   ${objects.join(', ')}`;
  yield `  masked    ${masked.length === 0 ? 'no column' : masked.join(', ')}${more}`;
  yield `  question  ${compared.question}`;
  yield `  rows      ${compared.rows}`;
}
