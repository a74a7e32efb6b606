import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { emit, type GovernedPlan, isRepeatable, isTimelessValue, oidOf, relationsRead } from 'osl-compiler';
import {
  type AnswerMemory,
  type BoundValue,
  type ExecuteResult,
  type MemoryShare,
  type RowSink,
  type StatementSettings,
  stopError,
} from '../../engine/index.js';
import type { CacheRule, Manifest } from '../../model/manifest/index.js';
import type { Caller } from '../request/caller.js';
import type { ModelUsage } from './model-usage.js';
import type { AnswerFreshness } from './query-answer.js';
import { unlessStopped } from './question.js';

interface CachedAnswer {
  readonly pieces: readonly { readonly bytes: Uint8Array; readonly rows: number }[];
  readonly rows: number;
  readonly bytes: number;
  /** Data epoch (see `DataEpochs`), read before the query ran. */
  readonly epoch: string;
  /** Time at which the answer was read, in ms since the epoch. */
  readonly asOf: number;
  /** The same time as `asOf`, on the clock of `performance.now()`. */
  readonly readAt: number;
}

export interface AnswerCacheBounds {
  readonly bytes: number;
  readonly entries: number;
  readonly answerBytes: number;
}

const ENTRY_BYTES = 512;

/** LRU cache of answers. It is part of the answer memory and shrinks when running queries need space. */
export class AnswerCache {
  readonly #bounds: AnswerCacheBounds;
  readonly #memory: AnswerMemory;
  readonly #answers: LRUCache<string, CachedAnswer> | null;
  #hits = 0;
  #misses = 0;

  constructor(bounds: AnswerCacheBounds, memory: AnswerMemory) {
    this.#bounds = bounds;
    this.#memory = memory;
    const { bytes: maxSize, entries: max } = bounds;
    const disposeAfter = (a: CachedAnswer): void => memory.giveBack(null, sizeOf(a)); // may free another answer
    this.#answers =
      maxSize === 0 ? null : new LRUCache({ max, maxSize, sizeCalculation: sizeOf, disposeAfter });
    memory.onShortage((bytes) => this.#evict(bytes));
  }

  get isOn(): boolean {
    return this.#answers !== null;
  }

  /** Largest answer that can be cached, in bytes. */
  get largest(): number {
    return Math.min(this.#bounds.answerBytes, this.#bounds.bytes - ENTRY_BYTES);
  }

  /** Returns the answer, or deletes it and returns null if its epoch is not current or it is older than `maxAgeMs`. */
  find(key: string, epoch: string, maxAgeMs: number): CachedAnswer | null {
    const answer = this.#answers?.get(key);
    const isUsable = answer?.epoch === epoch && performance.now() - answer.readAt <= maxAgeMs;
    if (isUsable) this.#hits++;
    else this.#misses++;
    if (answer !== undefined && !isUsable) this.#answers?.delete(key);
    return isUsable ? answer : null;
  }

  store(key: string, answer: CachedAnswer): void {
    if (this.#answers === null || sizeOf(answer) > this.#bounds.bytes) return;
    this.#memory.hold(null, sizeOf(answer)); // before `set`, which may evict the answer at once
    this.#answers.set(key, Object.freeze(answer));
  }

  clear(): void {
    this.#answers?.clear();
  }

  #evict(bytes: number): void {
    const targetSize = (this.#answers?.calculatedSize ?? 0) - bytes;
    while (this.#answers !== null && this.#answers.size > 0 && this.#answers.calculatedSize > targetSize)
      this.#answers.pop();
  }

  stats() {
    const { size: entries = 0, calculatedSize: bytes = 0 } = this.#answers ?? {};
    return { hits: this.#hits, misses: this.#misses, entries, bytes };
  }
}

function sizeOf({ bytes }: CachedAnswer): number {
  return bytes + ENTRY_BYTES;
}

interface AnswerCacheKey {
  readonly key: string;
  readonly rules: ReadonlyMap<string, CacheRule>;
  readonly maxAgeMs: number;
}

export interface DataEpochs {
  /** Returns an identifier of the state of these entities' rows, equal while the data is unchanged; null if unknown. */
  epochOf(rules: ReadonlyMap<string, CacheRule>): Promise<string | null>;
}

/** Everything that determines the bytes of an answer, except the rows in the database. */
interface KeyParts {
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  readonly values: readonly BoundValue[];
  readonly resultFormats: readonly (0 | 1)[];
  readonly settings: StatementSettings | undefined;
}

const RULES = new WeakMap<GovernedPlan['query'], ReadonlyMap<string, CacheRule> | null>();

/**
 * Returns the cache rules of all entities that `plan` reads. Null if the answer must not be cached: `plan` reads a
 * rollup, no relation, a relation without a rule or a database with row security, or it is not repeatable.
 */
export function cacheRulesOf(manifest: Manifest, plan: GovernedPlan): ReadonlyMap<string, CacheRule> | null {
  const cached = RULES.get(plan.query);
  if (cached !== undefined) return cached;
  const rules = rulesOf(manifest, plan);
  RULES.set(plan.query, rules);
  return rules;
}

function rulesOf(manifest: Manifest, plan: GovernedPlan): ReadonlyMap<string, CacheRule> | null {
  // A rollup may be older than the entity's current state.
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

export function cacheKeyOf(parts: KeyParts): AnswerCacheKey | null {
  const rules = cacheRulesOf(parts.caller.manifest, parts.plan);
  if (rules === null || !hasNoRelativeTimes(parts)) return null;
  const maxAgeMs = Math.min(...[...rules.values()].map((r) => r.maxAgeMs));
  return { key: keyOf(parts), rules, maxAgeMs };
}

/** True if no value is a relative time such as 'tomorrow'. */
export function hasNoRelativeTimes({ plan, values }: Pick<KeyParts, 'plan' | 'values'>): boolean {
  return emit(plan).slots.every((slot, i) => {
    const value = values[i];
    if (value === undefined) return false;
    const { bytes, format } = value;
    return isTimelessValue(slot, () =>
      bytes === null || format === 1 ? null : Buffer.from(bytes).toString('utf8'),
    );
  });
}

/**
 * INVARIANT: equal keys mean the same statement, values and settings, for callers with the same rights under the same
 * versions. Each part is preceded by its length, so that parts cannot be confused.
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

export interface CacheableQuestion {
  readonly answers: AnswerCache;
  readonly epochs: DataEpochs;
  readonly cacheKey: AnswerCacheKey;
  /** True if a cached answer may be used. If false, the query runs, and its answer may be cached. */
  readonly mayReuse: boolean;
  readonly usage: ModelUsage;
  /** Memory budget charged for the copy of the answer until it is cached. */
  readonly memory: MemoryShare;
  readonly signal: AbortSignal | null;
  requireInService(): void;
  live(sink: RowSink): Promise<ExecuteResult>;
}

/** Answers from the cache if the data is unchanged; otherwise runs the query, whose answer may be cached. */
export async function answerFromCache(
  question: CacheableQuestion,
  sink: RowSink,
): Promise<ExecuteResult & { readonly freshness: AnswerFreshness | null }> {
  const { answers, epochs, cacheKey, signal, usage } = question;
  const asOf = Date.now();
  const readAt = performance.now();
  const epoch = await unlessStopped(epochs.epochOf(cacheKey.rules), signal);
  // The data epoch is unknown, so the cache is bypassed.
  if (epoch === null) return { ...(await question.live(sink)), freshness: { from: 'live', asOf } };
  const cached = question.mayReuse ? answers.find(cacheKey.key, epoch, cacheKey.maxAgeMs) : null;
  if (cached !== null) {
    question.requireInService();
    usage.cachedAnswer(epoch, performance.now() - cached.readAt);
    await send(cached, sink, signal);
    return { rows: cached.rows, truncated: false, freshness: { from: 'cache', asOf: cached.asOf } };
  }
  const copy = new CopyingSink(sink, answers.largest, question.memory);
  const result = await question.live(copy);
  const { pieces, bytes } = copy;
  if (pieces !== null && !result.truncated)
    answers.store(cacheKey.key, { pieces, bytes, rows: result.rows, epoch, asOf, readAt });
  return { ...result, freshness: { from: 'live', asOf } };
}

/** Sends a cached answer to `sink`. @throws QueryError if `signal` aborts */
async function send({ pieces }: CachedAnswer, sink: RowSink, signal: AbortSignal | null): Promise<void> {
  for (const { bytes, rows } of pieces) {
    if (signal?.aborted === true) throw stopError(signal);
    const writing = sink.write(bytes, rows);
    if (writing !== undefined) await unlessStopped(writing, signal);
  }
}

/** Forwards rows and copies them, up to a maximum number of bytes. */
class CopyingSink implements RowSink {
  pieces: { readonly bytes: Uint8Array; readonly rows: number }[] | null = [];
  bytes = 0;
  readonly #target: RowSink;
  readonly #maxBytes: number;
  readonly #memory: MemoryShare;

  constructor(target: RowSink, maxBytes: number, memory: MemoryShare) {
    this.#target = target;
    this.#maxBytes = maxBytes;
    this.#memory = memory;
  }

  write(dataRows: Uint8Array, rows: number): void | Promise<void> {
    this.bytes += dataRows.length;
    if (this.pieces !== null && (this.bytes > this.#maxBytes || !this.#memory.hold(dataRows.length)))
      this.pieces = null;
    // Copied, since `dataRows` is a view of a larger buffer.
    else this.pieces?.push({ bytes: Uint8Array.from(dataRows), rows });
    return this.#target.write(dataRows, rows);
  }
}
