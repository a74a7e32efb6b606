import { createHash } from 'node:crypto';
import { emit, type GovernedPlan, isPlainTime, isRepeatable, oidOf, relationsRead } from 'osl-compiler';
import type { BoundValue, StatementSettings } from '../../engine/index.js';
import type { CacheRule, Manifest } from '../../model/manifest/index.js';
import type { Caller } from '../request/caller.js';

/** Under which an answer is kept, and what says that it still holds. */
export interface AnswerCacheKey {
  readonly key: string;
  /** Of every entity that the answer reads. */
  readonly rules: ReadonlyMap<string, CacheRule>;
  /** The least of theirs. */
  readonly maxAgeMs: number;
}

/** What the bytes of an answer hang on, beside the rows that are there. */
export interface KeyParts {
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  /** Of the plan's slots, in order: those of the text, of the caller, of policy. */
  readonly values: readonly BoundValue[];
  readonly resultFormats: readonly (0 | 1)[];
  readonly settings: StatementSettings | undefined;
}

const RULES = new WeakMap<GovernedPlan['query'], ReadonlyMap<string, CacheRule> | null>();

/**
 * The rules of all entities that `plan` reads; null where one of them has none, the plan is worked out anew each time,
 * or policies of the database itself are to be asked each time.
 */
export function cacheRulesOf(manifest: Manifest, plan: GovernedPlan): ReadonlyMap<string, CacheRule> | null {
  const known = RULES.get(plan.query);
  if (known !== undefined) return known;
  const found = rulesOf(manifest, plan);
  RULES.set(plan.query, found);
  return found;
}

function rulesOf(manifest: Manifest, plan: GovernedPlan): ReadonlyMap<string, CacheRule> | null {
  // A rollup is of a moment of its own, which says nothing of the entity's state now.
  if (plan.rollup !== null) return null;
  const relations = relationsRead(plan.query);
  const rules = new Map<string, CacheRule>();
  for (const { name, connector } of relations) {
    const rule = manifest.entities.get(name)?.cache ?? null;
    if (rule === null || manifest.connectors.get(connector)?.rowSecurity === true) return null;
    rules.set(name, rule);
  }
  return rules.size > 0 && isRepeatable(plan) ? rules : null;
}

/** How the answer to what was asked may be kept; null where it may not. */
export function keepingOf(parts: KeyParts): AnswerCacheKey | null {
  const rules = cacheRulesOf(parts.caller.manifest, parts.plan);
  if (rules === null || !saysTheSameTomorrow(parts)) return null;
  const maxAgeMs = Math.min(...[...rules.values()].map((r) => r.maxAgeMs));
  return { key: keyOf(parts), rules, maxAgeMs };
}

/** A value may be the text of a time that is another one tomorrow. */
function saysTheSameTomorrow({ plan, values }: KeyParts): boolean {
  return emit(plan).slots.every((slot, i) => {
    const value = values[i];
    if (value === undefined) return false;
    const { bytes, format } = value;
    return isPlainTime(slot, () =>
      bytes === null || format === 1 ? null : Buffer.from(bytes).toString('utf8'),
    );
  });
}

/**
 * INVARIANT: equal keys mean that the database is sent the same statement with the same values, under the same settings,
 * for callers who have the same rights under the same policy and manifest. Each part is preceded by its length, so that
 * no part can be made to look like two.
 */
function keyOf({ caller, plan, values, resultFormats, settings = [] }: KeyParts): string {
  const { sql, slots } = emit(plan);
  const hash = createHash('sha256');
  const add = (part: string | Uint8Array): void => {
    const bytes = typeof part === 'string' ? Buffer.from(part, 'utf8') : part;
    hash.update(`${bytes.length}:`).update(bytes);
  };
  const { manifest, snapshot, access } = caller;
  for (const part of [manifest.version, snapshot.version, access.signature, plan.connector ?? '', sql])
    add(part);
  add(plan.outputs.map((o, i) => `${oidOf(o.type)}.${formatAt(resultFormats, i)}`).join(' '));
  add(String(slots.length));
  for (const [i, { bytes, format }] of values.entries()) {
    const slot = slots[i];
    const declared = slot?.kind === 'client' && slot.declared !== null ? slot.declared.oid : 0;
    add(`${declared}.${format}.${bytes === null ? 'null' : 'value'}`);
    add(bytes ?? '');
  }
  for (const [name, value] of settings) {
    add(name);
    add(value);
  }
  return hash.digest('base64');
}

function formatAt(formats: readonly (0 | 1)[], column: number): 0 | 1 {
  return (formats.length === 1 ? formats[0] : formats[column]) ?? 0;
}
