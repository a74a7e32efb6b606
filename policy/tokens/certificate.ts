import type { X509Certificate } from 'node:crypto';
import type { CertificateDocument, PolicyDocument } from '../document.js';
import type { NameResolver } from '../names.js';
import type { DocumentPath, ProblemList } from '../problems.js';

/** A verified client certificate. Frozen. */
export interface ClientCertificate {
  /** The distinguished name of the subject (RFC 2253): `CN=maria,OU=People,O=Corp`. */
  readonly dn: string;
  /** The distinguished name of the issuer (RFC 2253). */
  readonly issuer: string;
  /** The common name; null if there is none or more than one. */
  readonly cn: string | null;
  /** The alternative names, prefixed with `dns:`, `uri:` or `email:`. */
  readonly names: ReadonlySet<string>;
  /** End of validity, ms since the epoch. */
  readonly endsAt: number;
}

/** A rule that maps certificates to a subject: all conditions must match. Roles stay within the subject's ceiling. */
export interface CertificateRule {
  readonly name: string;
  readonly subject: string;
  readonly aclRoles: readonly string[];
  readonly matches: (certificate: ClientCertificate) => boolean;
}

/** Conditions other than the issuer; at least one is required. */
const IDENTIFYING = ['dn', 'cn', 'dns', 'uri', 'email'] as const;

export function compileCertificateRule(
  name: string,
  rule: CertificateDocument,
  document: PolicyDocument,
  names: NameResolver,
  problems: ProblemList,
): CertificateRule {
  const path: DocumentPath = ['certificates', name];
  const { subject, acl_roles: declaredRoles } = rule;
  const owner = Object.hasOwn(document.subjects, subject) ? document.subjects[subject] : undefined;
  if (owner === undefined)
    problems.add('certificate', [...path, 'subject'], { message: `there is no subject \`${subject}\`` });
  if (IDENTIFYING.every((key) => rule[key] === undefined))
    problems.add('certificate', path, {
      message: 'every certificate of the authorities would fit',
      hint: `say which: one of ${IDENTIFYING.join(', ')}`,
    });
  const aclRoles = [...names.roles(declaredRoles ?? owner?.ceiling ?? [], [...path, 'acl_roles'])];
  return Object.freeze({ name, subject, aclRoles: Object.freeze(aclRoles), matches: matcherOf(rule) });
}

function matcherOf({ dn, cn, dns, uri, email, issuer }: CertificateDocument) {
  const names = [
    ...(dns === undefined ? [] : [nameOf('dns', dns)]),
    ...(uri === undefined ? [] : [nameOf('uri', uri)]),
    ...(email === undefined ? [] : [nameOf('email', email)]),
  ];
  return (certificate: ClientCertificate): boolean =>
    (dn === undefined || certificate.dn === dn) &&
    (cn === undefined || certificate.cn === cn) &&
    (issuer === undefined || certificate.issuer === issuer) &&
    names.every((name) => certificate.names.has(name));
}

/** Returns the only matching rule; null if no rule matches, or if several match, which would be ambiguous. */
export function ruleFor(
  rules: ReadonlyMap<string, CertificateRule>,
  certificate: ClientCertificate,
): CertificateRule | null {
  let match: CertificateRule | null = null;
  for (const rule of rules.values()) {
    if (!rule.matches(certificate)) continue;
    if (match !== null) return null;
    match = rule;
  }
  return match;
}

/** Reads an already verified certificate. */
export function readClientCertificate(certificate: X509Certificate): ClientCertificate {
  const { CN: cn } = certificate.toLegacyObject().subject;
  return Object.freeze({
    dn: toRfc2253(certificate.subject),
    issuer: toRfc2253(certificate.issuer),
    cn: typeof cn === 'string' ? cn : null,
    names: alternativeNames(certificate.subjectAltName ?? ''),
    endsAt: Date.parse(certificate.validTo),
  });
}

/** Converts a name to RFC 2253. Node returns one line per attribute, outermost first, already escaped. */
function toRfc2253(lines: string | undefined): string {
  return (lines ?? '').split('\n').reverse().join(',');
}

const KINDS: ReadonlyMap<string, 'dns' | 'uri' | 'email'> = new Map([
  ['DNS', 'dns'],
  ['URI', 'uri'],
  ['email', 'email'],
]);

/** Matches one entry of `DNS:a.example, URI:"a, b"`. Node writes a name that contains a separator as a JSON string. */
const ENTRY = /\s*([^:,"]+):("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/y;

function alternativeNames(text: string): ReadonlySet<string> {
  const names = new Set<string>();
  ENTRY.lastIndex = 0;
  for (let entry = ENTRY.exec(text); entry !== null && entry[0] !== ''; entry = ENTRY.exec(text)) {
    const kind = KINDS.get(entry[1] ?? '');
    const name = unquote(entry[2] ?? '');
    if (kind !== undefined && name !== null) names.add(nameOf(kind, name));
    if (ENTRY.lastIndex >= text.length) break;
  }
  return names;
}

function nameOf(kind: 'dns' | 'uri' | 'email', name: string): string {
  return `${kind}:${kind === 'dns' ? name.toLowerCase() : name}`;
}

function unquote(text: string): string | null {
  if (!text.startsWith('"')) return text;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'string' ? value : null;
  } catch {
    return null; // invalid, so it matches no rule
  }
}
