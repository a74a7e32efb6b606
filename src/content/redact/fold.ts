/**
 * A text as redaction compares it, with the way back. Equal under folding: case, Unicode compatibility forms
 * (NFKC), invisible characters, and any run of white space with one space.
 */
export interface Folded {
  readonly text: string;
  /** UTF-16 offset in the original where the character of each folded unit starts, and where it ends. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
}

/** A character with its marks; Hangul letters that may compose stay together. */
const CLUSTER = /[\u1100-\u11ff\ua960-\ua97f\ud7b0-\ud7ff]+\p{M}*|[\s\S]\p{M}*/gu;
/** Default-ignorable characters that hide a word from a search: soft hyphen, zero-width ones, direction marks. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}/gu;
const ASCII = /^[\x01-\x7f]*$/;

export function fold(text: string): Folded {
  const out = new Folding(text.length);
  if (ASCII.test(text)) {
    for (let i = 0; i < text.length; i++) out.add(lowerAscii(text.charCodeAt(i)), i, i + 1);
    return out.done();
  }
  for (const { 0: cluster, index } of text.matchAll(CLUSTER)) {
    const folded = foldCluster(cluster);
    for (let i = 0; i < folded.length; i++) out.add(folded.charCodeAt(i), index, index + cluster.length);
  }
  return out.done();
}

function lowerAscii(unit: number): number {
  return unit >= 0x41 && unit <= 0x5a ? unit + 0x20 : unit;
}

export function foldText(text: string): string {
  return fold(text).text;
}

/** Upper case first: that alone joins the three sigmas, and ß with ss. */
function foldCluster(cluster: string): string {
  const plain = cluster.replace(INVISIBLE, '').normalize('NFKC').replace(INVISIBLE, '');
  return plain.toUpperCase().toLowerCase().replaceAll('ς', 'σ').normalize('NFKC');
}

class Folding {
  #units: Uint16Array;
  #starts: Int32Array;
  #ends: Int32Array;
  #length = 0;

  constructor(expected: number) {
    this.#units = new Uint16Array(expected);
    this.#starts = new Int32Array(expected);
    this.#ends = new Int32Array(expected);
  }

  add(unit: number, start: number, end: number): void {
    const space = isSpace(unit);
    const at = this.#length;
    if (space && at > 0 && this.#units[at - 1] === SPACE) return;
    if (at === this.#units.length) this.#grow();
    this.#units[at] = space ? SPACE : unit;
    this.#starts[at] = start;
    this.#ends[at] = end;
    this.#length++;
  }

  #grow(): void {
    const size = this.#units.length * 2 + 32;
    const units = new Uint16Array(size);
    units.set(this.#units);
    this.#units = units;
    const [starts, ends] = [new Int32Array(size), new Int32Array(size)];
    starts.set(this.#starts);
    ends.set(this.#ends);
    [this.#starts, this.#ends] = [starts, ends];
  }

  done(): Folded {
    const text = Buffer.from(this.#units.buffer, 0, this.#length * 2).toString('utf16le');
    return {
      text,
      starts: this.#starts.subarray(0, this.#length),
      ends: this.#ends.subarray(0, this.#length),
    };
  }
}

const SPACE = 0x20;

function isSpace(unit: number): boolean {
  if (unit <= 0x7f) return unit === SPACE || (unit >= 0x09 && unit <= 0x0d);
  return unit === 0x85 || /\s/.test(String.fromCharCode(unit));
}
