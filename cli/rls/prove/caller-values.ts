import type { CallerAttribute } from '../import/attributes.js';
import { type CallerSource, sameSource, sourceText } from '../import/caller-value.js';

/** Setting in which PostgREST and hosted services pass all claims, and the prefix of those for each claim. */
export const CLAIMS_SETTING = 'request.jwt.claims';
export const CLAIM_PREFIX = 'request.jwt.claim.';

/** Where a value of the caller comes from. */
export function sourceOfSetting(name: string): CallerSource {
  return name.startsWith(CLAIM_PREFIX)
    ? { kind: 'claim', path: [name.slice(CLAIM_PREFIX.length)] }
    : { kind: 'setting', name };
}

/** A value that a policy reads from the session, and the attribute that subjects have instead. */
export interface CallerValueName {
  /** Of the attribute; otherwise a name that no attribute has. */
  readonly name: string;
  readonly source: CallerSource;
  readonly list: boolean;
}

/** Names of the values of callers: the same name on both sides of a proof is the same value. */
export class CallerValueNames {
  readonly #names: CallerValueName[];

  /** @param attributes the attributes that subjects have, and where they are from */
  constructor(attributes: readonly CallerAttribute[]) {
    this.#names = [...attributes];
  }

  nameOf(source: CallerSource, list: boolean): string {
    const known = this.#names.findIndex((one) => sameSource(one.source, source));
    const found = this.#names[known];
    if (found !== undefined) {
      if (list && !found.list) this.#names[known] = { ...found, list };
      return found.name;
    }
    const name = `(${sourceText(source)})`;
    this.#names.push({ name, source, list });
    return name;
  }

  named(name: string): CallerValueName | null {
    return this.#names.find((one) => one.name === name) ?? null;
  }
}
