import {
  ALL_FEATURES,
  type Catalog,
  compile,
  identifier,
  labelsOf,
  queryError,
  type Relation,
  type RelationAccess,
  type RelationGrant,
} from 'osl-compiler';
import { type EffectiveAccess, effectiveAccess, type IdentityClaims } from '../../../policy/index.js';
import { eachDataRow, textValuesOf } from '../../engine/index.js';
import { type CatalogName, isMore, type Visibility, widestVisibility } from '../../model/graph/index.js';
import { run } from '../data/ask.js';
import { ModelUsage } from '../data/model-usage.js';
import type { AnswerParts } from '../data/parts.js';
import { StandbyUse } from '../data/query-answer.js';
import type { Caller } from '../request/caller.js';
import { completeCaller } from '../request/identify.js';

/** A subject of the chain without which the chain would see more of the object. */
export interface TakenAway {
  readonly subject: string;
  readonly would_see: Visibility;
}

/** Returns the subjects of a chain that restrict the visibility of the object. */
export function takenAway(
  { column }: CatalogName,
  relation: Relation,
  catalog: Catalog,
  {
    identity,
    snapshot,
    circumstances,
  }: Pick<Caller, 'snapshot' | 'circumstances'> & { readonly identity: IdentityClaims },
): readonly TakenAway[] {
  const seenBy = (who: IdentityClaims): Visibility =>
    widestVisibility(relation, column, catalog, effectiveAccess(who, snapshot, catalog, circumstances));
  const now = seenBy(identity);
  return withoutEach(identity).flatMap(({ subject, others }) => {
    const then = seenBy(others);
    return isMore(then, now) ? [{ subject, would_see: then }] : [];
  });
}

/** Returns variants of the chain, each without one of its subjects; empty for a chain of one. */
function withoutEach(
  identity: IdentityClaims,
): readonly { readonly subject: string; readonly others: IdentityClaims }[] {
  const { chain } = identity;
  if (chain.length < 2) return [];
  return chain.map((subject) => {
    const left = Object.freeze(chain.filter((s) => s !== subject));
    return { subject, others: Object.freeze({ ...identity, chain: left, subject: left.at(-1) ?? '' }) };
  });
}

/** Visibility of a row, with the reasons. */
export interface RowReason {
  readonly key: readonly string[];
  /** True if the row is visible; false also if it does not exist. */
  readonly visible: boolean;
  /** Grants that show the row, each on its own, such as `roles.sales.grants[0]`. */
  readonly shown_by: readonly string[];
  /** Subjects of the chain without which the row would be visible; empty if it is visible. */
  readonly taken_away_by: readonly string[];
}

export interface RowQuestion {
  readonly relation: Relation;
  readonly key: readonly string[];
  readonly rules: ReadonlyMap<string, string>;
  readonly signal: AbortSignal;
  /** Resolves once the decision is recorded; nothing is read before that. */
  readonly recorded: Promise<void>;
}

/**
 * Checks whether the chain in `caller.seenAs` sees the row, by running the chain's row filters on the governed engine.
 * Only the row's existence is read. Masked key columns are compared in the clear, since only callers who may know the
 * policy may ask.
 *
 * @throws QueryError E0511 for a key of the wrong length or a relation without a key; and the errors of the statement
 */
export async function rowReason(
  parts: AnswerParts,
  caller: Caller,
  question: RowQuestion,
): Promise<RowReason> {
  const { relation, key, rules } = question;
  const keyColumns = relation.primaryKey;
  if (keyColumns.length === 0 || keyColumns.length !== key.length)
    throw queryError('malformedBody', { detail: keyFault(relation) });
  const grants = rowGrants(caller.access, relation);
  const shown_by: string[] = [];
  for (const grant of grants)
    if (await isThere(parts, caller, [grant], question)) shown_by.push(rules.get(grant.id) ?? grant.id);
  const visible = shown_by.length > 0;
  const taken_away_by: string[] = [];
  if (!visible)
    for (const { subject, others } of withoutEach(caller.evaluatedAs ?? caller.identity)) {
      const access = effectiveAccess(others, caller.snapshot, caller.manifest.catalog, caller.circumstances);
      const without = await completeCaller(parts, { ...caller, evaluatedAs: others, access });
      const left = rowGrants(without.access, relation);
      if (left.length > 0 && (await isThere(parts, without, left, question))) taken_away_by.push(subject);
    }
  return { key, visible, shown_by, taken_away_by };
}

/** Returns the grants that show single rows, not only groups. */
function rowGrants({ relations }: EffectiveAccess, { name }: Relation): readonly RelationGrant[] {
  return relations.get(name)?.grants.filter(({ groups }) => groups === undefined) ?? [];
}

function keyFault({ name, primaryKey }: Relation): string {
  return primaryKey.length === 0
    ? `\`${name}\` has no primary key, so no row of it can be named`
    : `\`row\` is the key of \`${name}\`: ${primaryKey.join(', ')}`;
}

async function isThere(
  parts: AnswerParts,
  caller: Caller,
  grants: readonly RelationGrant[],
  { relation, key, signal, recorded }: RowQuestion,
): Promise<boolean> {
  const { catalog } = caller.manifest;
  const access = keysOnly(caller.access, relation, grants);
  const where = relation.primaryKey.map((column, i) => `${identifier(column)} = $${i + 1}`).join(' and ');
  const text = `select count(*) as n from osl.entities.${identifier(relation.name)} where ${where}`;
  const plan = compile(text, catalog, access, { features: ALL_FEATURES });
  let found = '0';
  const sink = {
    write: (messages: Uint8Array): void => {
      for (const row of eachDataRow(messages)) found = textValuesOf(row)[0] ?? '0';
    },
  };
  const parameters = key.map((value) => ({ format: 0 as const, bytes: Buffer.from(value, 'utf8') }));
  const delivery = { parameters, resultFormats: [], maxRows: 1, signal };
  const uses = { usage: new ModelUsage(), standby: new StandbyUse(null, false) };
  await run(parts, { ...caller, access }, plan, delivery, recorded, () => sink, uses);
  return found !== '0';
}

/** Returns `access` restricted to the rows of `grants`, with only the key columns, unmasked. */
function keysOnly(
  access: EffectiveAccess,
  relation: Relation,
  grants: readonly RelationGrant[],
): EffectiveAccess {
  const columns: ReadonlySet<string> = new Set(relation.primaryKey);
  const unmask = labelsOf(relation);
  const masks = access.relations.get(relation.name)?.masks ?? new Map();
  const only: RelationAccess = Object.freeze({
    grants: grants.map((grant) => Object.freeze({ ...grant, columns, unmask })),
    masks,
    denied: new Set<string>(),
  });
  const signature = `row of ${relation.name} by ${grants.map((g) => g.id).join(' ')}: ${access.signature}`;
  return Object.freeze({
    ...access,
    signature,
    relations: new Map([[relation.name, only]]),
    denied: new Map(),
  });
}
