import { assertNever, nearest, queryError, type Relation } from 'osl-compiler';
import {
  type Circumstances,
  effectiveAccess,
  type HypotheticalCaller,
  hypotheticalClaims,
  type IdentityClaims,
  NOTHING_APPROVED,
  type PolicySnapshot,
  type Reasons,
  reasonsFor,
} from '../../../policy/index.js';
import {
  type CatalogName,
  objectName,
  objectNamed,
  readsOf,
  type Visibility,
  visibilities,
  widestVisibility,
} from '../../model/graph/index.js';
import type { AnswerParts } from '../data/parts.js';
import type { RequestCall } from '../request/call.js';
import { type Caller, type ServedVersions, versionsOf } from '../request/caller.js';
import { completeCaller } from '../request/identify.js';
import { adminsOnly } from '../request/refusals.js';
import { respond } from '../request/respond.js';
import { type RowReason, rowReason, type TakenAway, takenAway } from './row-visibility.js';

/** A question about how a hypothetical caller would see an object. */
export interface AccessQuestion extends HypotheticalCaller {
  /** Assumed circumstances. Conditions on circumstances that are not given are false; the time defaults to now. */
  readonly in: Partial<Omit<Circumstances, 'emergency'>>;
  /** An entity, bridge or facet, or one of its columns: `osl.entities.customer.email`. */
  readonly object: string;
  /** The primary key of a row; null if the question is not about a row. */
  readonly row: readonly string[] | null;
}

/** Visibility of an object, with each rule that affects it. */
export interface AccessExplanation extends Reasons {
  readonly object: string;
  readonly chain: readonly string[];
  readonly sees: Visibility;
  readonly label: string | null;
  /** The mask applied for callers without `unmask`; null if the column has no sensitivity label. */
  readonly mask: string | null;
  readonly columns: readonly { readonly name: string; readonly sees: Visibility }[];
  readonly taken_away_by: readonly TakenAway[];
  readonly because: readonly string[];
  readonly row: RowReason | null;
  readonly versions: ServedVersions;
}

/**
 * Explains how a hypothetical caller would see an object; only for callers who may know the policy. Reads no data
 * unless a row is given: then it reads the attributes that the row filters use, and checks whether the row exists.
 *
 * @throws QueryError E2101 without an admin role, E0512 for undeclared objects, and the errors of `respond`
 */
export function explainAccess(
  parts: AnswerParts,
  call: RequestCall,
  question: AccessQuestion,
  signal: AbortSignal,
): Promise<AccessExplanation> {
  return respond<AccessContext, AccessExplanation>(parts, call, {
    action: 'explain_access',
    target: { kind: 'draft', text: JSON.stringify(question) },
    bucket: 'authoring',
    requireAllowed: adminsOnly('authorsOnly'),
    decide: (caller, record) => {
      const ground = contextOf(caller, question);
      const { relation } = ground;
      record.setObjects({ form: null, objects: [objectName(relation)] });
      return ground;
    },
    answer: async (ground, caller, recorded) => {
      const { identity, relation } = ground;
      const access = effectiveAccess(
        identity,
        caller.snapshot,
        caller.manifest.catalog,
        ground.circumstances,
      );
      const rules = new Map(ground.reasons.grants.map((g) => [g.id, g.rule]));
      const known = {
        ...caller,
        evaluatedAs: identity,
        access,
        circumstances: ground.circumstances,
        purpose: ground.circumstances.purpose,
      };
      const { row: key } = question;
      const target = key === null ? known : await recorded.then(() => completeCaller(parts, known));
      const asked = { relation, key: key ?? [], rules, signal, recorded };
      const row = key === null ? null : await rowReason(parts, target, asked);
      return { ...explanationOf(ground, target), row, versions: versionsOf(caller) };
    },
  });
}

const NO_ROWS = {
  bridge: '`row` is a row of an entity: a bridge is asked about with its ends',
  facet: '`row` is a row of an entity: a facet has passages',
} as const;

interface AccessContext {
  readonly object: CatalogName;
  readonly relation: Relation;
  readonly identity: IdentityClaims;
  readonly circumstances: Circumstances;
  readonly reasons: Reasons;
}

function circumstancesIn({ in: given }: AccessQuestion): Circumstances {
  const { now = Date.now(), surface = '', address = null, purpose = null } = given;
  return { now, surface, address, purpose, emergency: null, approved: NOTHING_APPROVED };
}

function contextOf({ manifest: { catalog }, snapshot }: Caller, question: AccessQuestion): AccessContext {
  const object = objectNamed(question.object);
  const relation = catalog.relations.get(object.relation);
  if (relation === undefined)
    throw queryError('unknownRelation', {
      relation: question.object,
      near: nearest(object.relation, catalog.relations.keys()),
    });
  const columns = [...relation.columns, ...(relation.computed ?? [])].map((c) => c.name);
  if (object.column !== null && !columns.includes(object.column))
    throw queryError('unknownColumn', { column: object.column, near: nearest(object.column, columns) });
  if (question.row !== null && relation.kind !== 'entity')
    throw queryError('malformedBody', { detail: NO_ROWS[relation.kind] });
  const identity = hypotheticalClaims(question, snapshot);
  const circumstances = circumstancesIn(question);
  const access = effectiveAccess(identity, snapshot, catalog, circumstances);
  return {
    object,
    relation,
    identity,
    circumstances,
    reasons: reasonsFor(relation.name, identity, access, snapshot, catalog),
  };
}

function explanationOf(
  { object, relation, identity, reasons }: AccessContext,
  { access, manifest: { catalog }, snapshot, circumstances }: Caller,
): Omit<AccessExplanation, 'row' | 'versions'> {
  const label = labelOf(relation, object.column);
  const sight = widestVisibility(relation, object.column, catalog, access);
  const taken = takenAway(object, relation, catalog, { identity, snapshot, circumstances });
  return {
    object: objectName(relation, object.column),
    chain: identity.chain,
    sees: sight,
    label,
    mask: label === null ? null : (snapshot.masks.get(relation.name)?.get(label) ?? 'deny'),
    columns: object.column === null ? visibilities(relation, catalog, access) : [],
    taken_away_by: taken,
    because: becauseOf(sight, inputsOf(relation, object.column), label, reasons, taken, snapshot),
    ...reasons,
  };
}

function labelOf(relation: Relation, column: string | null): string | null {
  const all = [...relation.columns, ...(relation.computed ?? [])];
  return all.find((c) => c.name === column)?.sensitivity ?? null;
}

/** Returns the columns of the relation whose rules decide on `column`, several if it is computed; null: all of them. */
function inputsOf(relation: Relation, column: string | null): readonly string[] | null {
  if (column === null) return null;
  const inputs = readsOf(relation, column).filter((read) => read.relation === relation.name);
  return inputs.length === 0 ? null : inputs.map((read) => read.column);
}

function becauseOf(
  sight: Visibility,
  inputs: readonly string[] | null,
  label: string | null,
  reasons: Reasons,
  taken: readonly TakenAway[],
  { roles }: PolicySnapshot,
): readonly string[] {
  const covers = ({ columns }: Reasons['grants'][number]): boolean =>
    inputs === null || columns === '*' || inputs.some((input) => columns.includes(input));
  const counting = reasons.grants.filter((grant) => grant.counts && covers(grant));
  const lines = [...rolesText(reasons), ...denialsText(reasons, inputs)];
  if (reasons.grants.length === 0) {
    const holders = [...roles].filter(([, r]) => r.grants.size > 0).map(([name]) => name);
    lines.push(
      holders.length === 0
        ? 'no role of the policy grants anything'
        : 'no role that is claimed has a grant on it',
    );
  }
  for (const { rule, counts, lacking, conditions } of reasons.grants) {
    if (!counts)
      lines.push(
        `${rule} is not part of the rights${conditions === null ? '' : ': a condition of it does not hold'}`,
      );
    for (const { subject, attribute } of lacking)
      lines.push(`${rule} shows no row: ${subject} has no attribute \`${attribute}\``);
  }
  lines.push(
    ...visibilityText(
      sight,
      counting.map((g) => g.rule),
      label,
    ),
  );
  for (const { subject, would_see } of taken)
    lines.push(`without ${subject} the rest of the chain would see it ${WORDS[would_see]}`);
  return lines;
}

const WORDS: Readonly<Record<Visibility, string>> = {
  clear: 'in the clear',
  partly_masked: 'masked in some rows',
  masked: 'masked',
  aggregates: 'in aggregates only',
  nothing: 'not at all',
};

function* rolesText({ roles }: Reasons): Generator<string> {
  if (roles.length === 0) yield 'no data role is claimed';
  for (const { role, counts, declared, beyond } of roles) {
    if (!declared) yield `role \`${role}\` is not in the policy`;
    else if (beyond.length > 0)
      yield `role \`${role}\` does not count: it is beyond the ceiling of ${beyond.join(', ')}`;
    else if (!counts) yield `role \`${role}\` does not count now`;
  }
}

function* denialsText({ denials }: Reasons, inputs: readonly string[] | null): Generator<string> {
  for (const { rule, columns, held_by } of denials) {
    if (held_by.length === 0) continue;
    if (columns === null) yield `${rule} takes all of it away, by ${held_by.join(', ')}`;
    else if (inputs === null || inputs.some((input) => columns.includes(input)))
      yield `${rule} takes ${columns.join(', ')} away, by ${held_by.join(', ')}`;
  }
}

function visibilityText(
  sight: Visibility,
  rules: readonly string[],
  label: string | null,
): readonly string[] {
  const by = rules.join(', ');
  switch (sight) {
    case 'clear':
      return [
        `${by} ${rules.length === 1 ? 'shows' : 'show'} it unmasked, in the rows that ${rules.length === 1 ? 'it shows' : 'they show'}`,
      ];
    case 'partly_masked':
      return [
        `${by} show it: unmasked in the rows of those ${label === null ? 'that unmask what it is made of' : `with \`unmask: [${label}]\``}, masked in the others`,
      ];
    case 'masked':
      return [
        label === null
          ? `${by} ${rules.length === 1 ? 'shows' : 'show'} it, masked as what it is made of`
          : `${by} ${rules.length === 1 ? 'shows' : 'show'} it, and none has \`unmask: [${label}]\``,
      ];
    case 'aggregates':
      return [`${by} ${rules.length === 1 ? 'lets' : 'let'} it into aggregates, and no grant shows its rows`];
    case 'nothing':
      return ['it does not exist for this caller'];
    default:
      return assertNever(sight);
  }
}
