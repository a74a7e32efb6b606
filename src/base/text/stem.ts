/**
 * Porter's 1980 stemmer with the two usual amendments (`logi`, `bli`). Source: M. F. Porter, "An algorithm for suffix
 * stripping", Program 14(3).
 *
 * @param word lower-case; returned unchanged if it has letters other than a–z
 */
export function stem(word: string): string {
  if (word.length < 3 || !/^[a-z]+$/.test(word)) return word;
  let w = word.startsWith('y') ? `Y${word.slice(1)}` : word;
  w = step1c(step1b(step1a(w)));
  w = replaceSuffix(w, STEP_2, 0);
  w = replaceSuffix(w, STEP_3, 0);
  w = step5(step4(w));
  return w.toLowerCase();
}

const C = '[^aeiou]';
const V = '[aeiouy]';
const CC = `${C}[^aeiouy]*`;
const VV = `${V}[aeiou]*`;
const MORE_THAN_0 = new RegExp(`^(${CC})?${VV}${CC}`);
const EXACTLY_1 = new RegExp(`^(${CC})?${VV}${CC}(${VV})?$`);
const MORE_THAN_1 = new RegExp(`^(${CC})?${VV}${CC}${VV}${CC}`);
const HAS_VOWEL = new RegExp(`^(${CC})?${V}`);
const SHORT = new RegExp(`^${CC}${V}[^aeiouwxy]$`);
const DOUBLE = /([^aeiouylsz])\1$/;

type Suffixes = readonly (readonly [suffix: string, replacement: string])[];

const STEP_2: Suffixes = [
  ['ational', 'ate'],
  ['tional', 'tion'],
  ['enci', 'ence'],
  ['anci', 'ance'],
  ['izer', 'ize'],
  ['bli', 'ble'],
  ['alli', 'al'],
  ['entli', 'ent'],
  ['eli', 'e'],
  ['ousli', 'ous'],
  ['ization', 'ize'],
  ['ation', 'ate'],
  ['ator', 'ate'],
  ['alism', 'al'],
  ['iveness', 'ive'],
  ['fulness', 'ful'],
  ['ousness', 'ous'],
  ['aliti', 'al'],
  ['iviti', 'ive'],
  ['biliti', 'ble'],
  ['logi', 'log'],
];

const STEP_3: Suffixes = [
  ['icate', 'ic'],
  ['ative', ''],
  ['alize', 'al'],
  ['iciti', 'ic'],
  ['ical', 'ic'],
  ['ful', ''],
  ['ness', ''],
];

const STEP_4 = /^(.+?)(al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ou|ism|ate|iti|ous|ive|ize)$/;

function step1a(w: string): string {
  if (/(ss|i)es$/.test(w)) return w.slice(0, -2);
  return /[^s]s$/.test(w) ? w.slice(0, -1) : w;
}

function step1b(w: string): string {
  if (w.endsWith('eed')) return MORE_THAN_0.test(w.slice(0, -3)) ? w.slice(0, -1) : w;
  const suffix = w.endsWith('ed') ? 2 : w.endsWith('ing') ? 3 : 0;
  const base = w.slice(0, w.length - suffix);
  if (suffix === 0 || !HAS_VOWEL.test(base)) return w;
  if (/(at|bl|iz)$/.test(base)) return `${base}e`;
  if (DOUBLE.test(base)) return base.slice(0, -1);
  return SHORT.test(base) ? `${base}e` : base;
}

function step1c(w: string): string {
  return w.endsWith('y') && HAS_VOWEL.test(w.slice(0, -1)) ? `${w.slice(0, -1)}i` : w;
}

function replaceSuffix(w: string, suffixes: Suffixes, at: number): string {
  for (let i = at; i < suffixes.length; i++) {
    const [suffix, replacement] = suffixes[i] ?? ['', ''];
    if (!w.endsWith(suffix)) continue;
    const base = w.slice(0, w.length - suffix.length);
    return MORE_THAN_0.test(base) ? base + replacement : w;
  }
  return w;
}

function step4(w: string): string {
  const base = STEP_4.exec(w)?.[1];
  if (base !== undefined) return MORE_THAN_1.test(base) ? base : w;
  const ion = /^(.+?[st])ion$/.exec(w)?.[1];
  return ion !== undefined && MORE_THAN_1.test(ion) ? ion : w;
}

function step5(w: string): string {
  let out = w;
  if (out.endsWith('e')) {
    const base = out.slice(0, -1);
    if (MORE_THAN_1.test(base) || (EXACTLY_1.test(base) && !SHORT.test(base))) out = base;
  }
  return out.endsWith('ll') && MORE_THAN_1.test(out) ? out.slice(0, -1) : out;
}
