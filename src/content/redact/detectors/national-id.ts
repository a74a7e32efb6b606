import type { TextSpan } from '../../chunk.js';

export function spanOf(match: RegExpExecArray): TextSpan {
  return { start: match.index, end: match.index + match[0].length };
}

/**
 * Finds numbers in runs of groups, which `form` matches. A run may contain more than the number, such as the expiry date
 * after a card number, or the house number before a phone number. So the longest part that `isNumber` accepts is taken
 * of those that begin with the run and end with one of its groups; if there is none, the search resumes at the next group.
 * Parts that leave nothing of the run, or another number, are preferred: the longest may include the start of the next.
 */
export function groupedNumbers(
  text: string,
  form: RegExp,
  isNumber: (written: string, run: string) => boolean,
): readonly TextSpan[] {
  const found: TextSpan[] = [];
  let [rest, at] = [text, 0];
  const runs = new RegExp(form);
  for (let run = runs.exec(rest); run !== null; run = runs.exec(rest)) {
    const { 0: written, index } = run;
    const length = lengthOfNumber(written, isNumber);
    if (length === 0) runs.lastIndex = index + firstGroup(written);
    else {
      found.push({ start: at + index, end: at + index + length });
      // A mask will replace the number, so what follows it directly begins a new word.
      at += index + length;
      rest = text.slice(at);
      runs.lastIndex = 0;
    }
  }
  return found;
}

function lengthOfNumber(run: string, isNumber: (written: string, run: string) => boolean): number {
  const lengths = lengthsOfParts(run).filter((length) => isNumber(run.slice(0, length), run));
  const leavesNumber = (length: number): boolean => {
    const rest = run.slice(length).replace(/^[^A-Za-z0-9(]+/, '');
    return lengthsOfParts(rest).some((next) => isNumber(rest.slice(0, next), run));
  };
  return lengths.find((length) => length === run.length || leavesNumber(length)) ?? lengths[0] ?? 0;
}

/** Returns the lengths of the parts that begin with `run` and end with one of its groups, longest first. */
function lengthsOfParts(run: string): readonly number[] {
  const lengths: number[] = [];
  for (let end = run.length; end > 0; end = run.slice(0, end).search(/[^A-Za-z0-9]+[A-Za-z0-9]*$/))
    lengths.push(end);
  return lengths;
}

function firstGroup(run: string): number {
  return /^[^A-Za-z0-9]*[A-Za-z0-9]*/.exec(run)?.[0].length ?? 1;
}

function compact(written: string): string {
  return written.replace(/[^A-Za-z0-9]/g, '').toUpperCase();
}

/** True if `digits` pass the Luhn check (ISO/IEC 7812-1): the checksum must be a multiple of ten. */
function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let i = 0; i < digits.length; i++) {
    const digit = Number(digits[digits.length - 1 - i]);
    const doubled = i % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Remainder of a decimal number, computed digit by digit because such numbers exceed the precision of a double. */
function remainder(digits: string, modulus: number): number {
  let rest = 0;
  for (const digit of digits) rest = (rest * 10 + Number(digit)) % modulus;
  return rest;
}

function weighted(digits: string, weights: readonly number[]): number {
  return weights.reduce((sum, weight, i) => sum + weight * Number(digits[i]), 0);
}

/** True if the month has this day, at least in leap years. */
function isDay(month: number, day: number): boolean {
  return month >= 1 && month <= 12 && day >= 1 && day <= (DAYS[month - 1] ?? 0);
}

const DAYS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

/**
 * A kind of national identification number. Each kind has a written format and, where available, a check digit, a date
 * of birth or assigned ranges, so that few other numbers match.
 */
interface NationalId {
  readonly country: string;
  readonly form: RegExp;
  /** True if `compact` (upper-case letters and digits, without separators) is valid. */
  readonly holds: (compact: string) => boolean;
}

const DNI_LETTERS = 'TRWAGMYFPDXBNJZSQVHLCKE';

const IDS: readonly NationalId[] = [
  {
    country: 'US, social security number',
    form: /(?<![\w-])\d{3}-\d{2}-\d{4}(?![\w-])/g,
    holds: (n) => !/^(?:000|666|9)/.test(n) && n.slice(3, 5) !== '00' && n.slice(5) !== '0000',
  },
  {
    country: 'GB, national insurance number',
    form: /(?<![\w-])[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d{2} ?\d{2} ?\d{2} ?[A-D](?![\w-])/gi,
    holds: (n) => !/^(?:BG|GB|KN|NK|NT|TN|ZZ)/.test(n),
  },
  {
    country: 'FR, numéro de sécurité sociale',
    form: /(?<![\w-])[1278] ?\d{2} ?(?:0[1-9]|1[0-2]|[2-9]\d) ?(?:\d{2}|2[AB]) ?\d{3} ?\d{3} ?\d{2}(?![\w-])/gi,
    holds: (n) => {
      const digits = n.replace('2A', '19').replace('2B', '18');
      return 97 - remainder(digits.slice(0, 13), 97) === Number(digits.slice(13));
    },
  },
  {
    country: 'ES, DNI and NIE',
    form: /(?<![\w-])(?:\d{8}|[XYZ][ -]?\d{7})[ -]?[A-Z](?![\w-])/gi,
    holds: (n) => {
      const number = n.slice(0, -1).replace(/^[XYZ]/, (letter) => String('XYZ'.indexOf(letter)));
      return DNI_LETTERS[Number(number) % 23] === n.at(-1);
    },
  },
  {
    country: 'IT, codice fiscale',
    form: /(?<![\w-])[A-Z]{6} ?[\dLMNP-V]{2}[ABCDEHLMPRST][\dLMNP-V]{2} ?[A-Z][\dLMNP-V]{3}[A-Z](?![\w-])/gi,
    holds: (n) => codiceCheck(n.slice(0, 15)) === n[15],
  },
  {
    country: 'PL, PESEL',
    form: /(?<![\w.-])\d{11}(?![\w.-])/g,
    holds: (n) => {
      const month = Number(n.slice(2, 4)) % 20;
      const check = (10 - (weighted(n, [1, 3, 7, 9, 1, 3, 7, 9, 1, 3]) % 10)) % 10;
      return isDay(month, Number(n.slice(4, 6))) && check === Number(n[10]);
    },
  },
  {
    country: 'BR, CPF',
    form: /(?<![\w.-])\d{3}\.\d{3}\.\d{3}-\d{2}(?![\w-])/g,
    holds: (n) =>
      !/^(\d)\1+$/.test(n) && cpfCheck(n, 9) === Number(n[9]) && cpfCheck(n, 10) === Number(n[10]),
  },
  {
    country: 'SE, personnummer',
    form: /(?<![\w-])(?:\d{2})?\d{6}[-+]\d{4}(?![\w-])/g,
    holds: (n) => {
      const ten = n.slice(-10);
      const day = Number(ten.slice(4, 6));
      return isDay(Number(ten.slice(2, 4)), day > 60 ? day - 60 : day) && passesLuhn(ten);
    },
  },
  {
    country: 'FI, henkilötunnus',
    form: /(?<![\w-])\d{6}[-+A-FU-Y]\d{3}[0-9A-FHJ-NPR-Y](?![\w-])/gi,
    holds: (n) => {
      const digits = n.replace(/\D/g, '');
      const letter = '0123456789ABCDEFHJKLMNPRSTUVWXY'[Number(digits.slice(0, 9)) % 31];
      return isDay(Number(n.slice(2, 4)), Number(n.slice(0, 2))) && letter === n.at(-1);
    },
  },
  {
    country: 'CH, AHV',
    form: /(?<![\w.])756\.?\d{4}\.?\d{4}\.?\d{2}(?![\w.]\d|\w)/g,
    holds: (n) => (10 - (weighted(n, [1, 3, 1, 3, 1, 3, 1, 3, 1, 3, 1, 3]) % 10)) % 10 === Number(n[12]),
  },
  {
    country: 'CN, resident identity number',
    form: /(?<![\w-])[1-9]\d{5}(?:19|20)\d{9}[\dX](?![\w-])/gi,
    holds: (n) => {
      const weights = [7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2];
      return (
        isDay(Number(n.slice(10, 12)), Number(n.slice(12, 14))) &&
        '10X98765432'[weighted(n, weights) % 11] === n[17]
      );
    },
  },
  {
    country: 'IN, Aadhaar',
    form: /(?<![\w-])[2-9]\d{3}[ -]\d{4}[ -]\d{4}(?![\w-]| \d)/g,
    holds: (n) => verhoeff(n) === 0,
  },
  {
    country: 'KR, resident registration number',
    form: /(?<![\w-])\d{6}-[1-8]\d{6}(?![\w-])/g,
    holds: (n) => isDay(Number(n.slice(2, 4)), Number(n.slice(4, 6))),
  },
];

export function nationalIds(text: string): readonly TextSpan[] {
  const found: TextSpan[] = [];
  for (const { form, holds } of IDS) {
    for (const match of text.matchAll(form)) {
      if (holds(compact(match[0]))) found.push(spanOf(match));
    }
  }
  return found;
}

/** Values of the characters `0` to `9` and `A` to `Z` at odd positions of a codice fiscale. */
const ODD = [
  1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16,
  10, 22, 25, 24, 23,
];

function codiceCheck(first: string): string {
  let sum = 0;
  for (const [i, character] of [...first].entries()) {
    const digit = /\d/.test(character) ? Number(character) : -1;
    const letter = character.charCodeAt(0) - 65;
    if (i % 2 === 1) sum += digit >= 0 ? digit : letter;
    else sum += ODD[digit >= 0 ? digit : 10 + letter] ?? 0;
  }
  return String.fromCharCode(65 + (sum % 26));
}

function cpfCheck(digits: string, length: number): number {
  const weights = Array.from({ length }, (_, i) => length + 1 - i);
  const rest = (weighted(digits, weights) * 10) % 11;
  return rest === 10 ? 0 : rest;
}

/** Verhoeff checksum over the dihedral group of order ten; 0 if the digits are valid. */
function verhoeff(digits: string): number {
  let check = 0;
  for (let i = 0; i < digits.length; i++) {
    let digit = Number(digits[digits.length - 1 - i]);
    for (let turn = 0; turn < i % 8; turn++) digit = PERMUTED[digit] ?? 0;
    check = product(check, digit);
  }
  return check;
}

const PERMUTED = [1, 5, 7, 6, 2, 8, 3, 0, 9, 4] as const;

/** Product in the dihedral group: 0 to 4 are rotations, 5 to 9 reflections. */
function product(a: number, b: number): number {
  if (a < 5) return b < 5 ? (a + b) % 5 : 5 + ((a + b - 5) % 5);
  return b < 5 ? 5 + ((a - 5 - b + 5) % 5) : (a - b + 5) % 5;
}

/**
 * Matches text that may be a card number (ISO/IEC 7812-1): digits without separators, or in groups separated by the
 * same space or hyphen. `cards` checks the issuer, the length and the check digit.
 */
const CANDIDATE =
  /(?<![\p{L}\p{N}.,+-])\d{3,6}(?:([ -])\d{3,6}(?:\1\d{2,7}){1,3}|\d{7,16})(?![\p{L}\p{N}]|[.,-]\d)/gu;
/** Leading digits used by payment card issuers, and the lengths of their numbers. */
const ISSUERS: readonly (readonly [begins: RegExp, lengths: readonly number[]])[] = [
  [/^4/, [13, 16, 19]],
  [/^(?:5[1-5]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720)/, [16]],
  [/^3[47]/, [15]],
  [/^(?:6011|64[4-9]|65)/, [16, 19]],
  [/^(?:30[0-5]|3[68])/, [14, 16, 19]],
  [/^35(?:2[89]|[3-8])/, [16, 17, 18, 19]],
  [/^62/, [16, 17, 18, 19]],
  [/^(?:5[06-8]|6)/, [13, 14, 15, 16, 17, 18, 19]],
  [/^220[0-4]/, [16, 17, 18, 19]],
];

export function cards(text: string): readonly TextSpan[] {
  return groupedNumbers(text, CANDIDATE, (written) => {
    const digits = compact(written);
    const issued = ISSUERS.some(
      ([begins, lengths]) => begins.test(digits) && lengths.includes(digits.length),
    );
    return issued && passesLuhn(digits);
  });
}

/**
 * Matches a possible IBAN (ISO 13616): country code, two check digits, then letters and digits, possibly in groups or
 * over two lines.
 */
const IBAN_CANDIDATE =
  /(?<![\p{L}\p{N}])[A-Za-z]{2}\d{2}(?:(?:[ .-]|\r?\n)?[A-Za-z0-9]{1,4}){2,9}(?![\p{L}\p{N}])/gu;
/** Length of the shortest IBAN (Norway) and maximum length allowed by the standard. */
const LEAST_IBAN = 15;
const MOST_IBAN = 34;

export function ibans(text: string): readonly TextSpan[] {
  return groupedNumbers(text, IBAN_CANDIDATE, (written) => {
    const iban = compact(written);
    return iban.length >= LEAST_IBAN && iban.length <= MOST_IBAN && isIban(iban);
  });
}

function isIban(iban: string): boolean {
  const digits = `${iban.slice(4)}${iban.slice(0, 4)}`.replace(/[A-Z]/g, (letter) =>
    String(letter.charCodeAt(0) - 55),
  );
  return remainder(digits, 97) === 1;
}
