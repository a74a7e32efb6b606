import type { Span } from '../../chunk.js';

/** The sign itself, full width, or as URLs and HTML write it. */
const AT = /[@＠﹫]|%40|&#64;|&#x40;|&commat;/gi;
/** RFC 5321 allows 64 bytes before the sign and 255 after it. */
const LOCAL = /[\p{L}\p{N}\p{M}._%+'~-]{1,64}$/u;
const DOMAIN =
  /^(?:[\p{L}\p{N}\p{M}](?:[\p{L}\p{N}\p{M}-]{0,62})?[.．。]){1,8}\p{L}[\p{L}\p{M}\p{N}-]{1,62}/u;
const LONGEST_DOMAIN = 255;

export function emails(text: string): readonly Span[] {
  const found: Span[] = [];
  for (const { 0: sign, index } of text.matchAll(AT)) {
    const local = LOCAL.exec(text.slice(Math.max(0, index - 64), index))?.[0].replace(/^[.'-]+/, '');
    const after = index + sign.length;
    const domain = DOMAIN.exec(text.slice(after, after + LONGEST_DOMAIN))?.[0];
    if (local === undefined || local === '' || domain === undefined) continue;
    found.push({ start: index - local.length, end: after + domain.length });
  }
  return found;
}
