/** Suffix of a column's key variant, which joins read: masked values are NULL there, or a keyed hash. */
const KEY_SUFFIX = '#key';

export function keyColumnName(name: string): string {
  return besides(name, KEY_SUFFIX);
}

/** The maximum length of a name in Postgres, in bytes; longer ones are silently truncated. */
const LONGEST_NAME = 63;

/** Returns the name of an auxiliary column for `name`. It is unique: no name in a model contains `#`. */
function besides(name: string, suffix: string): string {
  const whole = `${name}${suffix}`;
  return bytesOf(whole) <= LONGEST_NAME ? whole : `${hashOf(name)}${suffix}`;
}

/** Returns the length in UTF-8 bytes. Each half of a surrogate pair counts as 2 of the 4 bytes. */
function bytesOf(text: string): number {
  let bytes = 0;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
  }
  return bytes;
}

/** Returns a 64-bit hash of a name. If two names collided, Postgres would refuse the columns as ambiguous. */
function hashOf(name: string): string {
  let [high, low] = [0x811c9dc5, 0x01000193];
  for (let i = 0; i < name.length; i++) {
    high = Math.imul(high ^ name.charCodeAt(i), 0x01000193);
    low = Math.imul(low ^ high, 0x85ebca6b) ^ (low >>> 13);
  }
  return `${(high >>> 0).toString(36)}${(low >>> 0).toString(36)}`;
}

const VISIBLE_SUFFIX = '#visible';

/** Returns the name of the flag that is true in each row where column `name` may be read unmasked. */
export function visibleColumnName(name: string): string {
  return besides(name, VISIBLE_SUFFIX);
}

/** True if an output has a name made by `visibleColumnName`. */
export function isVisibleFlag(output: string): boolean {
  return output.endsWith(VISIBLE_SUFFIX);
}
