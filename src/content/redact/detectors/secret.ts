import type { Span } from '../../chunk.js';
import { spanOf } from './national-id.js';

/** Tokens with the prefix of a service, and PEM keys. */
const MARKED: readonly RegExp[] = [
  /\bgh[opsur]_[A-Za-z0-9]{20,255}/g,
  /\bgithub_pat_\w{20,255}/g,
  /\bglpat-[\w-]{16,64}/g,
  /\bnpm_[A-Za-z0-9]{20,64}/g,
  /\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)[-_][\w-]{12,255}/g,
  /\bsk-[A-Za-z0-9]{20,255}/g,
  /\bxox[abeoprs]-[\w-]{10,255}/g,
  /\b(?:AKIA|ASIA|AGPA|AROA)[A-Z0-9]{16}\b/g,
  /\bAIza[\w-]{30,45}/g,
  /\bSG\.[\w-]{16,32}\.[\w-]{16,64}/g,
  /\bhf_[A-Za-z0-9]{20,64}/g,
  /\beyJ[\w-]{8,2000}\.eyJ[\w-]{8,4000}\.[\w-]{0,2000}/g,
  /-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]{0,8000}?-----END [A-Z ]{0,40}PRIVATE KEY-----/g,
];
/** Password in a URL. */
const IN_URL = /(?<=:\/\/[^\s:/@]{0,64}:)[^\s/@[\]]{3,128}(?=@)/g;
/** Value assigned to a name that suggests a secret. */
const ASSIGNED =
  /(?<=(?:password|passwd|secret|token|api[_-]?key|access[_-]?key|auth)["']?\s{0,3}[:=]\s{0,3}["']?)[A-Za-z0-9_+/=.~-]{12,255}/gi;
/** Without a slash: the parts of a path are checked separately. */
const TOKEN = /[A-Za-z0-9_+=-]{24,255}/g;
const LEAST_BITS = 4.2;
/**
 * Per character: identifiers change the kind of character once per syllable, random text at every other character.
 */
const LEAST_CHANGES = 0.33;

export function secrets(text: string): readonly Span[] {
  const found: Span[] = [];
  for (const pattern of [...MARKED, IN_URL])
    for (const match of text.matchAll(pattern)) found.push(spanOf(match));
  for (const match of text.matchAll(ASSIGNED)) if (isMixed(match[0])) found.push(spanOf(match));
  for (const match of text.matchAll(TOKEN)) if (looksRandom(match[0])) found.push(spanOf(match));
  return found;
}

function isMixed(token: string): boolean {
  return /\d/.test(token) && /[A-Za-z]/.test(token);
}

/**
 * True for a mix of upper case, lower case and digits without a pattern. Hexadecimal hashes (frequent in change
 * logs), paths and identifiers are not matched.
 */
function looksRandom(token: string): boolean {
  const digits = token.replace(/\D/g, '').length;
  if (digits < 3 || !/[a-z]/.test(token) || !/[A-Z]/.test(token) || /^[0-9a-fA-F-]+$/.test(token))
    return false;
  if (token.split(/[_-]/).every((part) => part.length < 20)) return false;
  return changesOfKind(token) >= token.length * LEAST_CHANGES && bitsPerCharacter(token) >= LEAST_BITS;
}

/** Number of changes between lower case, upper case, digits and signs. */
function changesOfKind(token: string): number {
  return token.match(/[a-z](?![a-z])|[A-Z](?![A-Z])|\d(?!\d)/g)?.length ?? 0;
}

/** Shannon entropy of the token's characters. */
function bitsPerCharacter(token: string): number {
  const counts = new Map<string, number>();
  for (const c of token) counts.set(c, (counts.get(c) ?? 0) + 1);
  let bits = 0;
  for (const count of counts.values()) bits -= (count / token.length) * Math.log2(count / token.length);
  return bits;
}

/** User and password of `scheme://user:password@host`, token of `scheme://token@host`. */
const USER_INFO = /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@?#"'<>]{1,256}(?=@[\p{L}\p{N}[])/giu;

export function urlCredentials(text: string): readonly Span[] {
  return [...text.matchAll(USER_INFO)].map(({ 0: match, index }) => ({
    start: index,
    end: index + match.length,
  }));
}
