import { createHash } from 'node:crypto';
import {
  type AttributeScalar,
  type AttributeTypes,
  type AttributeValue,
  attributeScalars,
  attributeTexts,
  mismatchFault,
} from '../attributes.js';
import type { ExchangeRuleDocument } from '../document.js';
import type { ExchangedMember } from '../identity.js';
import type { NameResolver } from '../names.js';
import type { DocumentPath, ProblemList } from '../problems.js';
import { RESERVED_CLAIMS, scalarsIn } from '../tokens/claims.js';
import type { JsonObject } from '../tokens/strict-json.js';
import { isName } from '../tokens/token-fault.js';
import type { IssuerClaims } from './identity-token.js';
import { refuseExchange } from './refusal.js';

/** Maximum number of values in a claim; a claim with a longer list counts as invalid. */
const MAX_VALUES = 256;

/** Looks up a claim by name, or by JSON pointer if `path` begins with `/` (`/realm_access/roles`). */
function claimAt(claims: JsonObject, path: string): unknown {
  if (!path.startsWith('/')) return claims.get(path);
  const [first = '', ...rest] = path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return rest.reduce<unknown>(memberOf, claims.get(first));
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

/** Returns the distinct names in a claim that is a name or a list of names; null for any other claim. */
function textsOf(value: unknown): readonly string[] | null {
  if (typeof value === 'string') return isName(value) ? [value] : null;
  if (!Array.isArray(value) || value.length > MAX_VALUES) return null;
  const list: readonly unknown[] = value;
  return list.every(isName) ? [...new Set(list)] : null;
}

/** Returns the attribute values in a claim, with numbers and booleans as strings; null if the claim is invalid. */
function attributeIn(value: unknown): readonly string[] | null {
  const scalars = attributeScalars(value);
  return scalars === null ? null : textsOf(attributeTexts(scalars));
}

/** Converts a valid name or a whole number to text; null for anything else. */
function valueIn(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : null;
  return isName(value) ? value : null;
}

/** True if `text` contains at least one claim in braces and no other brace. */
function isTemplate(text: string): boolean {
  return /\{[^{}]+\}/.test(text) && !/[{}]/.test(text.replaceAll(/\{[^{}]+\}/g, ''));
}

/** A rule that maps an issuer's identities to subjects of the policy. Frozen. */
export interface ExchangeRule {
  readonly id: string;
  readonly name: string;
  /** True if access tokens are accepted directly, without an exchange. */
  readonly direct: boolean;
  readonly ceiling: ReadonlySet<string>;
  readonly adminCeiling: ReadonlySet<string>;
  readonly purposes: ReadonlySet<string>;
  /** Returns the claims that are copied for use in grant conditions. */
  claimsOf(claims: IssuerClaims): ReadonlyMap<string, readonly string[]>;
  /** Returns the attributes of a subject whose token states `claimedAttributes`. */
  attributes(claimedAttributes: ReadonlyMap<string, readonly string[]>): ReadonlyMap<string, AttributeValue>;
  matches(claims: IssuerClaims): boolean;
  /** Returns the subject; null if the claims yield no valid name. */
  subjectOf(claims: IssuerClaims): string | null;
  /** Returns the subject's roles and attributes. @throws QueryError E3001 if a value has the wrong type for filters */
  memberOf(claims: IssuerClaims): ExchangedMember;
}

export interface ExchangeRules {
  readonly rules: readonly ExchangeRule[];
  readonly byId: ReadonlyMap<string, ExchangeRule>;
}

export function compileExchange(
  documents: readonly ExchangeRuleDocument[],
  names: NameResolver,
  purposes: ReadonlySet<string>,
  types: AttributeTypes,
  problems: ProblemList,
): ExchangeRules {
  const seen = new Set<string>();
  const rules = documents.map((document, i) => {
    const path: DocumentPath = ['exchange', i];
    if (seen.has(document.name))
      problems.add('exchange', [...path, 'name'], { message: `rule \`${document.name}\` is named twice` });
    seen.add(document.name);
    checkPurposes(document.purposes ?? [], purposes, [...path, 'purposes'], problems);
    return compileRule(document, path, names, types, problems);
  });
  return Object.freeze({ rules, byId: new Map(rules.map((rule) => [rule.id, rule])) });
}

function checkPurposes(
  names: readonly string[],
  declared: ReadonlySet<string>,
  path: DocumentPath,
  problems: ProblemList,
): void {
  for (const [i, name] of names.entries())
    if (!declared.has(name))
      problems.add('exchange', [...path, i], { message: `there is no purpose \`${name}\`` });
}

function compileRule(
  document: ExchangeRuleDocument,
  path: DocumentPath,
  names: NameResolver,
  types: AttributeTypes,
  problems: ProblemList,
): ExchangeRule {
  const { name, issuer, subject, when = {}, roles, attributes = {} } = document;
  if (!isTemplate(subject))
    problems.add('exchange', [...path, 'subject'], {
      message: 'it holds no claim, or a brace that closes none',
      hint: 'write the claim between braces: user:{sub}',
    });
  const mappings = Object.entries(roles?.map ?? {}).map(
    ([value, targets]) => [value, asList(targets)] as const,
  );
  for (const [value, targets] of mappings) names.roles(targets, [...path, 'roles', 'map', value]);
  const ceiling = names.ceiling(document.ceiling, [...path, 'ceiling']);
  for (const [value, targets] of mappings)
    for (const role of targets)
      if (!ceiling.has(role))
        problems.add('exchange', [...path, 'roles', 'map', value], {
          message: `role \`${role}\` is not below the ceiling of the rule`,
        });
  checkSources(attributes, ceiling, [...path, 'attributes'], types, problems);
  for (const [i, claim] of (document.claims ?? []).entries())
    if (RESERVED_CLAIMS.has(claim))
      problems.add('exchange', [...path, 'claims', i], {
        message: `claim \`${claim}\` is one that every actor token has of its own`,
      });
  const roleMap = new Map(mappings);
  const rolesOf = ({ claims }: IssuerClaims): readonly string[] => {
    if (roles === undefined) return [...ceiling];
    const values = textsOf(claimAt(claims, roles.claim)) ?? [];
    return [...new Set(values.flatMap((value) => roleMap.get(value) ?? []))];
  };
  return Object.freeze({
    id: idOf(document),
    name,
    direct: document.direct === true,
    ceiling,
    adminCeiling: new Set(document.admin ?? []),
    purposes: new Set(document.purposes ?? []),
    claimsOf: ({ claims }: IssuerClaims) => copiedClaims(document.claims ?? [], claims),
    attributes: (claimedAttributes: ReadonlyMap<string, readonly string[]>) =>
      attributesOf(attributes, claimedAttributes),
    matches: (from: IssuerClaims) =>
      from.issuer === issuer &&
      Object.entries(when).every(([claim, accepted]) => claimMatches(claimAt(from.claims, claim), accepted)),
    subjectOf: ({ claims }: IssuerClaims) => subjectIn(subject, claims),
    memberOf: (from: IssuerClaims) =>
      Object.freeze({
        rule: idOf(document),
        roles: rolesOf(from),
        attributes: attributesFromClaims(attributes, from.claims, ceiling, types),
      }),
  });
}

type AttributeRules = NonNullable<ExchangeRuleDocument['attributes']>;

function checkSources(
  attributes: AttributeRules,
  ceiling: ReadonlySet<string>,
  path: DocumentPath,
  types: AttributeTypes,
  problems: ProblemList,
): void {
  for (const [attribute, source] of Object.entries(attributes)) {
    const fixed = fixedValues(source);
    const isFixed = fixed !== null && attributeTexts(fixed) !== null;
    const isMapping = isSource(source) && 'any' in source !== 'claim' in source;
    if (!(isFixed || isMapping) || (isSource(source) && 'among' in source && !('claim' in source)))
      problems.add('exchange', [...path, attribute], {
        message:
          'an attribute is text, a number, true or false, a list of these, `{any: true}`, or `{claim: …}`, with `among` or without',
      });
    for (const value of fixed ?? []) {
      const mismatch = types.mismatch(ceiling, attribute, value);
      if (mismatch !== null)
        problems.add('exchange', [...path, attribute], mismatchFault(attribute, value, mismatch));
    }
  }
}

type ClaimedAttribute = AttributeRules[string];

/** Returns the fixed values of an attribute in the rule; null if the values come from a claim or are `any`. */
function fixedValues(source: ClaimedAttribute): readonly AttributeScalar[] | null {
  return isSource(source) ? null : attributeScalars(source);
}

function isSource(
  source: ClaimedAttribute,
): source is Extract<ClaimedAttribute, { claim: string } | { any: true }> {
  return typeof source === 'object' && !Array.isArray(source);
}

/**
 * Reads the attributes that the rule takes from claims. An attribute without a valid claim is left out.
 *
 * @throws QueryError E3001 if a value does not fit the type that filters require
 */
function attributesFromClaims(
  attributes: AttributeRules,
  claims: JsonObject,
  ceiling: ReadonlySet<string>,
  types: AttributeTypes,
): ReadonlyMap<string, readonly string[]> {
  return new Map(
    Object.entries(attributes).flatMap(([name, source]) => {
      if (!isSource(source) || !('claim' in source)) return [];
      const values = attributeIn(claimAt(claims, source.claim));
      if (values?.some((v) => types.mismatch(ceiling, name, v) !== null) === true)
        refuseExchange('attribute');
      return values === null ? [] : [[name, values] as const];
    }),
  );
}

function copiedClaims(names: readonly string[], claims: JsonObject): ReadonlyMap<string, readonly string[]> {
  return new Map(
    names.flatMap((name) => {
      const values = claims.has(name) ? scalarsIn(claims.get(name)) : null;
      return values === null ? [] : [[name, values] as const];
    }),
  );
}

/** INVARIANT: claimed attributes are bounded by the current rule, not by the rule at the time of the exchange. */
function attributesOf(
  attributes: AttributeRules,
  claimedAttributes: ReadonlyMap<string, readonly string[]>,
): ReadonlyMap<string, AttributeValue> {
  return new Map(
    Object.entries(attributes).flatMap(([name, source]): readonly (readonly [string, AttributeValue])[] => {
      if (!isSource(source)) return [[name, attributeTexts(attributeScalars(source) ?? []) ?? []]];
      if ('any' in source) return [[name, 'any']];
      const among = source.among?.map(String);
      const values = claimedAttributes.get(name);
      if (values === undefined) return [];
      return [[name, among === undefined ? values : values.filter((v) => among.includes(v))]];
    }),
  );
}

function asList(value: string | readonly string[]): readonly string[] {
  return typeof value === 'string' ? [value] : value;
}

/** True if the claim is one of the accepted values or a list that contains one of them. */
function claimMatches(claim: unknown, accepted: string | boolean | readonly string[]): boolean {
  if (typeof accepted === 'boolean') return claim === accepted;
  const values = textsOf(claim);
  return values !== null && asList(accepted).some((value) => values.includes(value));
}

/**
 * Fills in a subject template; null if a claim is missing or the result is not a valid name. `email` requires
 * `email_verified`, since users could otherwise choose any address.
 */
function subjectIn(template: string, claims: JsonObject): string | null {
  const parts = template.split(/\{([^{}]+)\}/);
  const texts = parts.map((part, i) => {
    if (i % 2 === 0) return part;
    if (part === 'email' && claims.get('email_verified') !== true) return null;
    return valueIn(claimAt(claims, part));
  });
  const subject = texts.includes(null) ? null : texts.join('');
  return isName(subject) ? subject : null;
}

/** Returns an id that changes with every change of the rule, so that earlier tokens no longer match the rule. */
function idOf(document: ExchangeRuleDocument): string {
  return createHash('sha256').update(JSON.stringify(document, sortedKeys)).digest('base64url').slice(0, 22);
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}
