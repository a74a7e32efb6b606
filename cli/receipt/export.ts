import { createPrivateKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { coseReceipt, parseVerifierKey } from '../../audit/index.js';
import { keysIn } from '../audit/log.js';
import { usage } from '../exit.js';
import { note } from '../output.js';
import { provenReceipt } from './proven-record.js';

export interface ExportReceiptFlags {
  readonly key: string;
  readonly signingKey: string;
  readonly cose: string;
}

/** Writes a receipt that holds as COSE receipt, and its record. @throws Failure */
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
