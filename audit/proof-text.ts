/**
 * Inclusion proofs as C2SP tlog-proof text. The `extra` line holds the record:
 *
 * ```
 * c2sp.org/tlog-proof@v1
 * extra <record, base64>
 * index <index of the record in the log>
 * <sibling, base64>                     one line for each level of the tree, lowest first
 *
 * <checkpoint note>
 * ```
 */

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const PROOF =
  /^c2sp\.org\/tlog-proof@v1\nextra (?<extra>[A-Za-z0-9+/]+={0,2})\nindex (?<index>0|[1-9]\d{0,15})\n(?<path>(?:[A-Za-z0-9+/]{43}=\n)*)\n(?<note>[\s\S]+)$/;

/** The parts of a proof; nothing is checked yet. */
interface ProofParts {
  readonly record: Buffer;
  readonly index: number;
  readonly path: readonly Buffer[];
  readonly note: string;
}

export function proofText(record: Buffer, index: number, path: readonly Buffer[], note: string): string {
  const siblings = path.map((hash) => `${hash.toString('base64')}\n`).join('');
  return `${FIRST_LINE}\nextra ${record.toString('base64')}\nindex ${index}\n${siblings}\n${note}`;
}

/** Reads a proof; null if the text is none, or spells its bytes in another way than `proofText` does. */
export function parseProof(text: string): ProofParts | null {
  const groups = PROOF.exec(text)?.groups;
  if (groups === undefined) return null;
  const { extra = '', index = '', path = '', note = '' } = groups;
  const parts = {
    record: Buffer.from(extra, 'base64'),
    index: Number(index),
    path: path
      .split('\n')
      .slice(0, -1)
      .map((line) => Buffer.from(line, 'base64')),
    note,
  };
  return proofText(parts.record, parts.index, parts.path, note) === text ? parts : null;
}
