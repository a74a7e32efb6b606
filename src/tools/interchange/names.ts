import { RESERVED } from '../../model/manifest/index.js';

const LONGEST = 63;

/** `text` as a name of a manifest, other characters as underscores; null where nothing of it can be one. */
export function legalName(text: string): string | null {
  const plain = text.replace(/[^A-Za-z0-9_]/g, '_').replace(/^_{2,}/, '_');
  if (/^_*$/.test(plain)) return null;
  const begun = /^[0-9]/.test(plain) ? `_${plain}` : plain;
  const name = begun.slice(0, LONGEST);
  return RESERVED.has(name.toLowerCase()) ? `${name}_` : name;
}

/** Names that are taken; case does not count. */
export class TakenNames {
  readonly #taken = new Set<string>();

  has(name: string): boolean {
    return this.#taken.has(name.toLowerCase());
  }

  /** Takes `wanted`, or the next of `wanted_2`, `wanted_3`, … that is free. */
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
