import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import {
  type AuditRecord,
  checkProof,
  coseReceipt,
  type InclusionVerdict,
  parseVerifierKey,
  type ReceiptDigests,
} from '../../audit/index.js';
import { questionDigest } from '../../src/ask/receipts/digests.js';
import { parseFields } from '../../src/surfaces/rest/bodies/json.js';
import { type QueryRequest, toQueryRequest } from '../../src/surfaces/rest/bodies/query.js';
import { keysIn } from '../audit/log.js';
import { type Failure, failure, usage } from '../exit.js';
import { note } from '../output.js';

type ValidProof = Extract<InclusionVerdict, { readonly ok: true }>;

/** A receipt with a valid proof. */
export interface ProvenReceipt {
  readonly record: AuditRecord;
  readonly receipt: ReceiptDigests;
  readonly checkpoint: ValidProof['checkpoint'];
}

/** Reads a receipt and checks its proof. @throws Failure if the proof is not valid */
export function provenReceipt(file: string, keyFile: string): ProvenReceipt {
  const { record, checkpoint } = proven(readFileSync(file, 'utf8'), keysIn(keyFile));
  const { receipt } = record;
  if (receipt === undefined) throw notHolding('its record is not that of an answer with a receipt');
  return { record, receipt, checkpoint };
}

function proven(text: string, keys: readonly string[]): ValidProof {
  let reason = 'there is no key to check it with';
  for (const key of keys) {
    const verdict = checkProof(text, key);
    if (verdict.ok) return verdict;
    ({ reason } = verdict);
  }
  throw notHolding(reason);
}

export function notHolding(reason: string): Failure {
  return failure(`the receipt does not hold: ${reason}`);
}

/** Reads the salt of a receipt, by default from the file `<receipt>.salt`. @throws Failure */
export function saltOf(file: string, given: string | undefined): Buffer {
  const saltFile = given ?? `${file}.salt`;
  try {
    return Buffer.from(readFileSync(saltFile, 'utf8').trim(), 'base64url');
  } catch {
    throw usage(
      `the salt that only the caller got is needed, and ${saltFile} cannot be read: name it with --salt`,
    );
  }
}

/** Reads a query from the body of its request. @throws Failure if the receipt is for another query */
export function questionOf(file: string, { receipt }: ProvenReceipt, salt: Uint8Array): QueryRequest {
  const question = toQueryRequest(parseFields(readFileSync(file)));
  if (questionDigest(salt, question.body, question.parameters) !== receipt.question)
    throw notHolding('the question is not the one that was answered');
  return question;
}

export interface ExportReceiptFlags {
  readonly key: string;
  readonly signingKey: string;
  readonly cose: string;
}

/** Verifies a receipt and writes it as a COSE receipt, with its record in a second file. @throws Failure */
export function runExportReceipt(file: string, { key, signingKey, cose }: ExportReceiptFlags): void {
  const { checkpoint } = provenReceipt(file, key);
  const verifierKey = keysIn(key).find((line) => line.startsWith(`${checkpoint.origin}+`));
  if (verifierKey === undefined) throw usage(`${key} has no key of ${checkpoint.origin}`);
  const record = `${cose}.record.json`;
  try {
    const privateKey = createPrivateKey(readFileSync(signingKey));
    const made = coseReceipt(readFileSync(file, 'utf8'), parseVerifierKey(verifierKey), privateKey);
    writeFileSync(cose, made.receipt);
    writeFileSync(record, made.entry);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw usage(`${signingKey}: ${error.message}`);
  }
  note(`${cose} is about the record in ${record}`);
}
