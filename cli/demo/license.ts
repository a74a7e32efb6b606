import type { LicenseClass } from './tables.js';

export interface License {
  readonly license: string;
  readonly license_class: LicenseClass;
}

const UNKNOWN: License = Object.freeze({ license: 'UNKNOWN', license_class: 'unknown' });
const LONGEST = 400;

/**
 * Normalizes the SPDX expression `stated`: corrects common misspellings, capitalizes operators and drops outer
 * parentheses. Anything else stays unchanged and gets the class `unknown`.
 *
 * For `A OR B` the user may choose, so the weaker obligation counts; for `A AND B` both apply, so the stronger one
 * counts.
 */
export function licenseOf(stated: string | null): License {
  if (stated === null) return UNKNOWN;
  const text = (SPELLINGS.get(stated.toLowerCase()) ?? stated).slice(0, LONGEST);
  const parser = new LicenseExpression(text.match(/[()]|[^\s()]+/g) ?? []);
  const parsed = parser.whole();
  return parsed === null
    ? { license: text, license_class: 'unknown' }
    : { license: parsed.text, license_class: parsed.class };
}

/** License classes, from the weakest obligation to the strongest. */
const DUTY: readonly LicenseClass[] = ['permissive', 'other', 'unknown', 'copyleft'];

interface LicenseTerm {
  readonly text: string;
  readonly class: LicenseClass;
  /** True if the term is joined by OR and so needs parentheses inside AND. */
  readonly loose: boolean;
}

class LicenseExpression {
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(tokens: readonly string[]) {
    this.#tokens = tokens;
  }

  whole(): LicenseTerm | null {
    const term = this.#either();
    return this.#at === this.#tokens.length ? term : null;
  }

  #either(): LicenseTerm | null {
    return this.#chain('OR', () => this.#both());
  }

  #both(): LicenseTerm | null {
    return this.#chain('AND', () => this.#single());
  }

  #chain(operator: 'OR' | 'AND', part: () => LicenseTerm | null): LicenseTerm | null {
    let left = part();
    while (left !== null && this.#take(operator)) {
      const right = part();
      left = right === null ? null : joined(operator, left, right);
    }
    return left;
  }

  #single(): LicenseTerm | null {
    if (this.#take('(')) {
      const inner = this.#either();
      return this.#take(')') ? inner : null;
    }
    const id = this.#id();
    if (id === null) return null;
    if (!this.#take('WITH')) return { text: id, class: classOf(id), loose: false };
    const exception = this.#id();
    return exception === null ? null : { text: `${id} WITH ${exception}`, class: classOf(id), loose: false };
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at]?.toUpperCase() !== token) return false;
    this.#at++;
    return true;
  }

  #id(): string | null {
    const token = this.#tokens[this.#at];
    if (token === undefined || !/^[A-Za-z0-9][A-Za-z0-9.:+-]*$/.test(token)) return null;
    this.#at++;
    return SPELLINGS.get(token.toLowerCase()) ?? token;
  }
}

function joined(operator: 'OR' | 'AND', left: LicenseTerm, right: LicenseTerm): LicenseTerm {
  const [l, r] = [DUTY.indexOf(left.class), DUTY.indexOf(right.class)];
  const rank = operator === 'OR' ? Math.min(l, r) : Math.max(l, r);
  const show = (t: LicenseTerm) => (operator === 'AND' && t.loose ? `(${t.text})` : t.text);
  return {
    text: `${show(left)} ${operator} ${show(right)}`,
    class: DUTY[rank] ?? 'unknown',
    loose: operator === 'OR',
  };
}

/** Licenses that the demo's policy treats as permissive. */
const PERMISSIVE = /^(MIT|ISC|BSD|0BSD|Apache)(-|$)/;
const COPYLEFT =
  /^(AGPL|GPL|LGPL|MPL|EPL|EUPL|CDDL|CECILL|OSL|MS-RL|SSPL|Sleepycat|CC-BY(-NC)?-SA|GFDL|QPL|CPL)(-|$)/;
const UNSTATED = /^(UNKNOWN|NONE|NOASSERTION|SEE|(DocumentRef-.*:)?LicenseRef-.*)$/;

function classOf(id: string): LicenseClass {
  if (UNSTATED.test(id)) return 'unknown';
  if (PERMISSIVE.test(id)) return 'permissive';
  return COPYLEFT.test(id) ? 'copyleft' : 'other';
}

/** Maps common spellings, in lower case, to SPDX identifiers. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ...['MIT', 'MIT-0', 'ISC', '0BSD', 'BSD-2-Clause', 'BSD-3-Clause', 'Apache-2.0', 'MPL-2.0', 'CC0-1.0'].map(
    (id): [string, string] => [id.toLowerCase(), id],
  ),
  ['the mit license', 'MIT'],
  ['mit license', 'MIT'],
  ['mit/x11', 'MIT'],
  ['isc license', 'ISC'],
  ['bsd license', 'BSD'],
  ['new bsd', 'BSD-3-Clause'],
  ['apache 2.0', 'Apache-2.0'],
  ['apache 2', 'Apache-2.0'],
  ['apache2', 'Apache-2.0'],
  ['apache-2', 'Apache-2.0'],
  ['apache license 2.0', 'Apache-2.0'],
  ['apache license, version 2.0', 'Apache-2.0'],
]);
