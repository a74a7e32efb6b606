import { readFileSync } from 'node:fs';
import {
  type AuditProof,
  checkProof,
  type ProofVerdict,
  type ProveOptions,
  prove,
} from '../../audit/index.js';
import { EXIT, Failure } from '../exit.js';
import { note, print, printJson } from '../output.js';
import { type AuditFlags, onRecord, withLog } from './log.js';
import { keysIn } from './read-log.js';

/** The proof may be of any of the chains; each has its own key. */
function checkedBy(text: string, keys: readonly string[]): ProofVerdict {
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
    await onRecord(log, 'prove', { requestId });
    for (const chain of log.chains) proofs.push(...(await prove(chain, requestId, flags)));
  });
  if (proofs.length === 0) {
    throw new Failure(
      EXIT.failed,
      `error: the newest checkpoint covers no record of request ${requestId}: one is signed every minute and at stop`,
    );
  }
  if (flags.json) printJson(proofs);
  else process.stdout.write(proofs.map((proof) => proof.text).join(''));
}

/** Verifies what `osl audit prove` printed; only the key is needed. */
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
