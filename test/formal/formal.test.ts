import { rmSync } from 'node:fs';
import t from 'tap';
import { checkProof, hasCoq, NO_COQ, proofTexts } from './model.js';

/** The proof of docs/formal: complete, small, and accepted by Coq. */
const LINES = 1_500;
/** Words with which a proof would leave something out. */
const GAPS =
  /\b(Admitted|admit|Axiom|Axioms|Parameter|Parameters|Conjecture|Unset Guard Checking|bypass_check)\b/;

t.setTimeout(300_000);

/** The text without comments, which may nest. */
function codeOf(text: string): string {
  let depth = 0;
  return text
    .split(/(\(\*|\*\))/)
    .filter((part) => {
      if (part === '(*') depth++;
      const isCode = depth === 0;
      if (part === '*)') depth--;
      return isCode;
    })
    .join('');
}

t.test('the proof is complete and small', async (t) => {
  const texts = [...proofTexts()];
  for (const [file, text] of texts) t.notMatch(codeOf(text), GAPS, file);
  const lines = texts.reduce((sum, [, text]) => sum + text.trimEnd().split('\n').length, 0);
  t.comment(`${lines} lines`);
  t.ok(lines <= LINES, `${lines} lines`);
});

t.test('Coq accepts the proof', { skip: hasCoq() ? false : NO_COQ }, async (t) => {
  const { folder, printed } = checkProof();
  rmSync(folder, { recursive: true, force: true });
  const answers = printed.trim().split('\n');
  t.ok(answers.length > 0 && answers.every((line) => line === 'Closed under the global context'), printed);
});
