import { rmSync, writeFileSync } from 'node:fs';
import type { AnswerReceipt } from '../client.js';
import { EXIT, Failure } from '../exit.js';

/** Writes a receipt, and its salt beside it, readable for its owner only. @throws Failure if there is no receipt */
export function keepReceipt(file: string, receipt: AnswerReceipt | undefined): void {
  if (receipt === undefined)
    throw new Failure(
      EXIT.failed,
      'error: the server answered without a receipt: it may be older than this osl',
    );
  writeFileSync(file, receipt.proof);
  rmSync(`${file}.salt`, { force: true }); // a file that is there would keep its mode
  writeFileSync(`${file}.salt`, `${receipt.salt}\n`, { mode: 0o600 });
}
