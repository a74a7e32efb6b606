/** How else people spell a name; folding alone does not make these the same. */

/** Letters that are written as two where a keyboard has them not. */
const AS_TWO: ReadonlyMap<string, string> = new Map([
  ['ä', 'ae'],
  ['ö', 'oe'],
  ['ü', 'ue'],
  ['å', 'aa'],
  ['ø', 'oe'],
]);
const WITH_TWO = new RegExp(`[${[...AS_TWO.keys()].join('')}]`, 'g');
const APOSTROPHE = /(?<=\p{L})['’ʼ`´‘](?=\p{L})/gu;
const HYPHEN = /(?<=\p{L})[-‐‑](?=\p{L})/gu;
/** Shorter words are too likely to be others. */
const LEAST_LETTERS = 5;

/** Other spellings of a name: `Mueller` of Müller, `OBrien` of O'Brien, `Anne Marie` of Anne-Marie. Of anything else none. */
export function otherSpellings(value: string): readonly string[] {
  const name = value.normalize('NFC').toLowerCase();
  if (name.length < LEAST_LETTERS || !/^[\p{L}\p{M}\s.'’ʼ`´‘‐‑-]+$/u.test(name)) return [];
  const others = new Set([name]);
  for (const respell of [asTwo, withoutApostrophes, withSpaces])
    for (const spelling of [...others]) others.add(respell(spelling));
  others.delete(name);
  return [...others];
}

function asTwo(name: string): string {
  return name.replace(WITH_TWO, (letter) => AS_TWO.get(letter) ?? letter);
}

function withoutApostrophes(name: string): string {
  return name.replace(APOSTROPHE, '');
}

function withSpaces(name: string): string {
  return name.replace(HYPHEN, ' ');
}
