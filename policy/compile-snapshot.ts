import { createHash } from 'node:crypto';
import { attributePattern, type Catalog, isComparable, type MaskKind } from 'osl-compiler';
import {
  AttributeTypes,
  type AttributeValue,
  attributeScalars,
  attributeTexts,
  mismatchFault,
  type TableAttribute,
} from './attributes.js';
import { checkApprovers } from './compile-conditions.js';
import type { PolicyDocument, SubjectDocument } from './document.js';
import { compileExchange } from './exchange/rule.js';
import { compileQuotas, LIMIT_BUCKETS, limitsOf } from './limits/quotas.js';
import { NameResolver, type RelationNames } from './names.js';
import { type DocumentPath, type Fault, ProblemList } from './problems.js';
import { compileRoleInSteps, PredicateBinder } from './role.js';
import { compileServiceAccount } from './service-account.js';
import type { PolicySnapshot, RolePolicy, SubjectPolicy } from './snapshot.js';
import { compileTableAttributes } from './table-attributes.js';
import { compileCertificateRule } from './tokens/certificate.js';
import { isName } from './tokens/token-fault.js';

/**
 * Compiles a policy against a catalog: resolves role, relation, column and label names, and binds every `rows`
 * predicate. `ready()` of osl-compiler must have been awaited. Throws `PolicyProblems` with all faults.
 *
 * @param tenant the tenant of the manifest; null if it names none
 */
export function compileSnapshot(
  document: PolicyDocument,
  catalog: Catalog,
  tenant: string | null = null,
): PolicySnapshot {
  const steps = compileSnapshotInSteps(document, catalog, tenant);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** Compiles a snapshot in steps, so that other requests can be served in between. */
export function* compileSnapshotInSteps(
  document: PolicyDocument,
  catalog: Catalog,
  tenant: string | null = null,
): Generator<void, PolicySnapshot> {
  const problems = new ProblemList();
  const hash = contentHash(document);
  yield;
  const masks = compileMasks(document, problems);
  const names = new NameResolver(catalog, Object.keys(document.roles), masks.keys(), problems);
  yield;
  const predicates = new PredicateBinder(problems);
  if (!isName(document.tenant))
    problems.add('name', ['tenant'], { message: 'the tenant has no usable name' });
  else if (tenant !== null && tenant !== document.tenant)
    problems.add('tenant', ['tenant'], tenantMismatch(document, tenant));
  names.maskedLabels(masks, ['masks']);
  for (const name of Object.keys(document.order ?? {})) names.relation(name, ['order', name]);
  const units = compileUnits(document, names, problems);
  const purposes = new Set(Object.keys(document.purposes ?? {}));
  const subjects = new Map<string, SubjectPolicy>();
  for (const [name, s] of Object.entries(document.subjects)) {
    subjects.set(name, compileSubject(name, s, names, purposes, problems));
    if (subjects.size % SUBJECTS_PER_STEP === 0) yield;
  }
  const roles = new Map<string, RolePolicy>();
  for (const [name, r] of Object.entries(document.roles)) {
    const context = { names, catalog, predicates, problems, purposes, units, idKey: hash.slice(32) };
    roles.set(name, yield* compileRoleInSteps(name, r, context));
  }
  const tableAttributes = compileTableAttributes(document.attributes ?? {}, { names, predicates, problems });
  const serviceAccounts = mapEntries(document.service_accounts ?? {}, (a, login) =>
    compileServiceAccount(login, a, document, names, problems),
  );
  const certificates = mapEntries(document.certificates ?? {}, (rule, name) =>
    compileCertificateRule(name, rule, document, names, problems),
  );
  const types = new AttributeTypes(roles, tableAttributes);
  checkTableAttributes(document, tableAttributes, types, problems);
  yield* checkAttributesInSteps(document, subjects, types, problems);
  const exchange = compileExchange(document.exchange ?? [], names, purposes, types, problems);
  yield;
  checkLimits(document, problems);
  checkApprovers(document, problems);
  const quotas = compileQuotas(document, names, problems);
  problems.throwIfAny();
  return Object.freeze({
    version: hash.slice(0, 32),
    catalogVersion: catalog.version,
    tenant: document.tenant,
    subjects,
    roles,
    tableAttributes,
    masks: new Map([...names.relations].map(([name, r]) => [name, masksOf(r, masks)])),
    ordered: new Set(Object.keys(document.order ?? {})),
    limits: limitsOf(document.limits),
    quotas,
    serviceAccounts,
    certificates,
    exchange,
    document,
  });
}

/** Checks the types of attributes read from entities, and that no subject or exchange rule states them too. */
function checkTableAttributes(
  { subjects, exchange = [] }: PolicyDocument,
  tableAttributes: ReadonlyMap<string, TableAttribute>,
  types: AttributeTypes,
  problems: ProblemList,
): void {
  const report = (stated: object | undefined, path: DocumentPath): void => {
    for (const name of Object.keys(stated ?? {}))
      if (tableAttributes.has(name))
        problems.add('attribute', [...path, 'attributes', name], {
          message: `\`${name}\` is read from \`${tableAttributes.get(name)?.relation.name ?? ''}\``,
          hint: 'use another name for one of them',
        });
  };
  for (const [name, { attributes }] of Object.entries(subjects)) report(attributes, ['subjects', name]);
  for (const [i, { attributes }] of exchange.entries()) report(attributes, ['exchange', i]);
  for (const { name, type, relation, column } of tableAttributes.values()) {
    const compared = types.otherThan(name, type);
    if (compared !== null)
      problems.add('attribute', ['attributes', name, 'column'], {
        message: `${column === null ? 'it' : `\`${column}\` of \`${relation.name}\``} is ${type}, and \`${compared.relation}\` compares it with ${compared.type}`,
        hint: 'compare columns of one type',
      });
  }
}

/** Checks the attribute values of subjects against the types with which filters compare them. */
function* checkAttributesInSteps(
  document: PolicyDocument,
  subjects: ReadonlyMap<string, SubjectPolicy>,
  types: AttributeTypes,
  problems: ProblemList,
): Generator<void, void> {
  let checked = 0;
  for (const [name, { attributes = {} }] of Object.entries(document.subjects)) {
    const ceiling = subjects.get(name)?.ceiling ?? new Set();
    for (const [attribute, value] of Object.entries(attributes))
      for (const scalar of attributeScalars(value) ?? []) {
        const mismatch = types.mismatch(ceiling, attribute, scalar);
        if (mismatch !== null)
          problems.add(
            'attribute',
            ['subjects', name, 'attributes', attribute],
            mismatchFault(attribute, scalar, mismatch),
          );
      }
    if (++checked % SUBJECTS_PER_STEP === 0) yield;
  }
}

const SUBJECTS_PER_STEP = 256;

function tenantMismatch(document: PolicyDocument, tenant: string): Fault {
  return {
    message: `the policy is that of tenant \`${document.tenant}\`, and the manifest that of \`${tenant}\``,
    hint: 'take the policy that belongs to the manifest, or name one tenant in both files',
  };
}

/** Hashes the document: 64 hex digits. The first half is the public version, the second a secret key for grant ids. */
function contentHash(document: PolicyDocument): string {
  return createHash('sha256').update(JSON.stringify(document, sortedKeys)).digest('hex');
}

function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Builds a Map, because YAML names may be `__proto__`. */
function mapEntries<A, B>(
  record: Readonly<Record<string, A>>,
  f: (value: A, name: string) => B,
): ReadonlyMap<string, B> {
  return new Map(Object.entries(record).map(([name, value]) => [name, f(value, name)]));
}

const MASK_KINDS: Readonly<Record<MaskKind, true>> = {
  redact: true,
  null: true,
  hash: true,
  partial: true,
  year: true,
  deny: true,
};

function compileMasks(document: PolicyDocument, problems: ProblemList): ReadonlyMap<string, MaskKind> {
  for (const [label, mask] of Object.entries(document.masks)) {
    if (Object.hasOwn(MASK_KINDS, mask)) continue;
    problems.add('mask', ['masks', label], {
      message: 'there is no such mask',
      hint: `a mask is one of ${Object.keys(MASK_KINDS).join(', ')}`,
    });
  }
  return new Map(Object.entries(document.masks));
}

function masksOf(
  relation: RelationNames,
  masks: ReadonlyMap<string, MaskKind>,
): ReadonlyMap<string, MaskKind> {
  return new Map([...relation.labels].map((label) => [label, masks.get(label) ?? 'deny']));
}

/** Compiles `privacy_units`: by relation, the column that identifies a data subject, if not the primary key. */
function compileUnits(
  document: PolicyDocument,
  names: NameResolver,
  problems: ProblemList,
): ReadonlyMap<string, string> {
  const units = new Map<string, string>();
  for (const [name, column] of Object.entries(document.privacy_units ?? {})) {
    const path = ['privacy_units', name] as const;
    const resolved = names.relation(name, path);
    if (resolved === null) continue;
    names.columns([column], resolved, path);
    const type = resolved.relation.columns.find((c) => c.name === column)?.type;
    if (type === undefined || !isComparable(type) || resolved.relation.kind === 'facet')
      problems.add('groups', path, { message: `\`${column}\` tells nobody apart in \`${name}\`` });
    units.set(name, column);
  }
  return units;
}

const MAX_LIMIT = 1_000_000;

function checkLimits(document: PolicyDocument, problems: ProblemList): void {
  const limits = limitsOf(document.limits);
  for (const bucket of LIMIT_BUCKETS) {
    const value = limits[bucket];
    if (Number.isInteger(value) && value >= 1 && value <= MAX_LIMIT) continue;
    problems.add('limit', ['limits', bucket], {
      message: `a limit is a whole number from 1 to ${MAX_LIMIT}`,
      hint: 'it counts requests a second of one subject',
    });
  }
}

function compileSubject(
  name: string,
  document: SubjectDocument,
  names: NameResolver,
  declared: ReadonlySet<string>,
  problems: ProblemList,
): SubjectPolicy {
  const path: DocumentPath = ['subjects', name];
  if (!isName(name)) problems.add('name', path, { message: 'no token can carry this subject name' });
  const attributes = new Map<string, AttributeValue>();
  for (const [key, value] of Object.entries(document.attributes ?? {})) {
    const parsed = readAttribute(value);
    if (parsed !== null) attributes.set(key, parsed);
    else problems.add('attribute', [...path, 'attributes', key], INVALID_ATTRIBUTE);
  }
  return Object.freeze({
    ceiling: names.ceiling(document.ceiling, [...path, 'ceiling']),
    adminCeiling: new Set(document.admin ?? []),
    purposes: purposesOf(document.purposes ?? [], declared, [...path, 'purposes'], problems),
    attributes,
    pattern: attributePattern(attributes),
  });
}

const INVALID_ATTRIBUTE = {
  message: 'an attribute is text, a number of up to 15 digits, true, false, a list of these or `{any: true}`',
  hint: 'put a number of more than 15 digits between quotes',
};

function purposesOf(
  names: readonly string[],
  declared: ReadonlySet<string>,
  path: DocumentPath,
  problems: ProblemList,
): ReadonlySet<string> {
  for (const [i, name] of names.entries())
    if (!declared.has(name))
      problems.add('condition', [...path, i], {
        message: `there is no purpose \`${name}\``,
        hint: 'declare it in `purposes`',
      });
  return new Set(names);
}

/** Reads an attribute value; null if it is not valid. Values are never coerced. */
function readAttribute(value: unknown): AttributeValue | null {
  const scalars = attributeScalars(value);
  if (scalars !== null) return attributeTexts(scalars);
  const isAny = typeof value === 'object' && value !== null && 'any' in value && value.any === true;
  return isAny ? 'any' : null;
}
