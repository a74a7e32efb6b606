import { RESERVED } from '../src/model/manifest/index.js';

const LONGEST = 63;

/** Makes `text` a valid manifest name by replacing invalid characters with underscores; null if nothing remains. */
export function legalName(text: string): string | null {
  const plain = text.replace(/[^A-Za-z0-9_]/g, '_').replace(/^_{2,}/, '_');
  if (/^_*$/.test(plain)) return null;
  const begun = /^[0-9]/.test(plain) ? `_${plain}` : plain;
  const name = begun.slice(0, LONGEST);
  return RESERVED.has(name.toLowerCase()) ? `${name}_` : name;
}

/** Allocates names that are unique regardless of case. */
export class TakenNames {
  readonly #taken = new Set<string>();

  has(name: string): boolean {
    return this.#taken.has(name.toLowerCase());
  }

  /** Takes `wanted`, or the first free name of `wanted_2`, `wanted_3`, … */
  take(wanted: string): string {
    let name = wanted;
    for (let n = 2; this.has(name); n++) {
      const suffix = `_${n}`;
      name = `${wanted.slice(0, LONGEST - suffix.length)}${suffix}`;
    }
    this.#taken.add(name.toLowerCase());
    return name;
  }
}

/** Prepares a name from a source for use in a message: shortened, without control characters. */
export function safeText(text: string): string {
  const short = text.length > 80 ? `${text.slice(0, 80)}…` : text;
  return short.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/g, '\ufffd');
}

/** Builds an object without a prototype, because a file may contain the name `__proto__`. */
export function members<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  const out: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) out[name] = value;
  return out;
}
