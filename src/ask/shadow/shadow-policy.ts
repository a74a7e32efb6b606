import { createHash, randomUUID } from 'node:crypto';
import { GovernedPlan, QueryError, queryError, shapeOf } from 'osl-compiler';
import {
  accessUntil,
  attributesToReadFor,
  type Circumstances,
  compileSnapshotInSteps,
  type EffectiveAccess,
  effectiveAccess,
  type IdentityClaims,
  type PolicyDocument,
  type PolicySnapshot,
  purposeOf,
  type ReadAttributes,
  subjectsOf,
} from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import { messageOf, stackOf } from '../../base/thrown.js';
import type { Manifest } from '../../model/manifest/index.js';
import { requireModelAccess } from '../data/model-usage.js';
import type { FastPathQuestion, PlanningCaller, Rollups, ShadowWatch } from '../data/parts.js';
import { createPlanCache } from '../data/plan-cache.js';
import { type CompilingParts, planOf } from '../data/planning.js';
import type { PlannedQuestion } from '../data/question.js';
import { createParsing } from '../parsing/index.js';
import type { CompileMark } from '../parsing/marks.js';
import type { Caller } from '../request/caller.js';
import { type RedactedStatement, redactStatement } from '../request/redacted-statement.js';
import { comparePlans, type PlanComparison, type PolicySide } from './compare-plans.js';
import { type ComparedStatement, reportOf, type ShadowFigures } from './shadow-report.js';

/**
 * Questions of one caller that have the same shape, with the result of the comparison. Times are in ms since the epoch.
 */
interface CountedStatement {
  questions: number;
  first: number;
  last: number;
  /** `waiting` until it is compared; `failed` if the comparison was impossible. */
  result: PlanComparison | 'waiting' | 'failed';
  /** The redacted statement if the result is a difference; otherwise null. */
  statement: RedactedStatement | null;
}

/** Rights of one caller under both policies, and the caller's questions. */
interface CallerStatements {
  readonly chain: readonly string[];
  readonly served: PolicySide;
  /** An error if the shadow policy refuses every question of the caller in these circumstances. */
  readonly shadow: PolicySide | QueryError;
  readonly manifest: Manifest;
  readonly byPlan: WeakMap<GovernedPlan['query'], CountedStatement>;
  readonly byShape: Map<string, CountedStatement>;
}

/** A question that waits to be compared. */
interface WaitingQuestion {
  readonly of: CallerStatements;
  readonly question: PlannedQuestion;
  /** The plan under the served policy, or the error with which that policy refused the question. */
  readonly outcome: GovernedPlan | QueryError;
  readonly counted: CountedStatement;
}

/** Maximum number of compared statements, and maximum number of callers. Questions beyond either are only counted. */
const MOST_STATEMENTS = 10_000;
/** Maximum number of waiting questions, and of characters in their texts. */
const MOST_WAITING = 1_000;
const MOST_WAITING_CHARACTERS = 4_194_304;

/** Delay in ms before a new question is compared, so that its answer is sent first. */
const HEAD_START_MS = 20;
/** The comparison pauses for this many times the duration of its last turn, to take at most a twentieth of the time. */
const REST = 19;
/** Duration in ms of a turn that only counts questions of known shapes. Compiling a question also ends the turn. */
const TURN_MS = 1;

/**
 * Compares the served decision on each data question with that of a second policy, which serves no requests. A question
 * of a known shape by a known caller only increments a counter. Any other question waits in a bounded queue and is
 * compiled under the shadow policy after it has been answered.
 *
 * INVARIANT: nothing here reaches a caller. No cache is shared with the served policy, and no method throws.
 */
export class ShadowPolicy implements ShadowWatch {
  readonly #parts: () => CompilingParts;
  readonly #parsing;
  /** A plan cache that stores nothing. */
  readonly #plans = createPlanCache(0);
  readonly #document: PolicyDocument;
  /** The shadow policy compiled for the served manifest; null if it does not compile. */
  #current: { readonly manifest: Manifest; readonly snapshot: PolicySnapshot | null };
  #isCompiling = false;
  readonly #byCaller = new WeakMap<Caller, { readonly of: CallerStatements; readonly until: number }>();
  readonly #byAccess = new WeakMap<EffectiveAccess, CallerStatements>();
  readonly #byKey = new Map<string, CallerStatements>();
  #statements = 0;
  readonly #waiting: WaitingQuestion[] = [];
  #waitingCharacters = 0;
  #isDue = false;
  /** End of the pause after the last turn, on the clock of `performance.now()`. */
  #restUntil = 0;
  #ended = false;
  readonly #uncompared = { queue_full: 0, too_many: 0, model_changed: 0, failed: 0 };

  constructor(parts: () => CompilingParts, snapshot: PolicySnapshot, manifest: Manifest) {
    this.#parts = parts;
    this.#parsing = createParsing({ log: parts().log });
    this.#document = snapshot.document;
    this.#current = { manifest, snapshot };
  }

  onDecision(caller: Caller, question: PlannedQuestion, outcome: unknown): void {
    this.#guarded(() => {
      if (GovernedPlan.is(outcome)) this.#count(caller, outcome, () => question);
      else if (outcome instanceof QueryError && isOfPolicy(outcome))
        this.#count(caller, outcome, () => question);
      else this.#uncompared.failed++;
    });
  }

  onFastPath({ caller, route, bytes, start, end }: FastPathQuestion): void {
    this.#guarded(() =>
      this.#count(caller, route.plan, () => ({
        body: { kind: route.kind, text: Buffer.from(bytes.subarray(start, end)).toString('utf8') },
        parameterOids: route.parameterOids,
      })),
    );
  }

  /** Returns the figures of the comparison so far. */
  figures(): ShadowFigures {
    const compared: ComparedStatement[] = [];
    let same = 0;
    let waiting = 0;
    let failed = this.#uncompared.failed;
    for (const { chain, byShape } of this.#byKey.values())
      for (const { result, questions, first, last, statement } of byShape.values()) {
        if (result === 'failed') failed += questions;
        else if (result === 'waiting') waiting += questions;
        else if (result.kind === 'same') same += questions;
        else if (statement !== null)
          compared.push({ chain, comparison: result, questions, first, last, statement });
      }
    waiting += this.#waiting.reduce((sum, { counted }) => sum + counted.questions, 0);
    return reportOf({ compared, same, waiting, notCompared: { ...this.#uncompared, failed } });
  }

  async close(): Promise<void> {
    this.#ended = true;
    await this.#parsing.close();
  }

  /** Runs `work`. An error in it is logged and counted, but never reaches the caller of the question. */
  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failed(error);
    }
  }

  #failed(error: unknown): void {
    this.#uncompared.failed++;
    this.#parts().log.error('a question was not compared with the shadow policy', { error: stackOf(error) });
  }

  #count(caller: Caller, outcome: GovernedPlan | QueryError, question: () => PlannedQuestion): void {
    const now = Date.now();
    const of = this.#statementsOf(caller, now);
    if (of === null) return;
    const known = outcome instanceof QueryError ? undefined : of.byPlan.get(outcome.query);
    if (known !== undefined) {
      known.questions++;
      known.last = now;
    } else this.#wait(of, outcome, question(), now);
  }

  #wait(
    of: CallerStatements,
    outcome: GovernedPlan | QueryError,
    { body, parameterOids }: PlannedQuestion,
    now: number,
  ): void {
    const characters = lengthOf(body);
    const isFull = this.#waitingCharacters + characters > MOST_WAITING_CHARACTERS;
    if (this.#waiting.length >= MOST_WAITING || isFull) {
      this.#uncompared.queue_full++;
      return;
    }
    const counted: CountedStatement = {
      questions: 1,
      first: now,
      last: now,
      result: 'waiting',
      statement: null,
    };
    if (!(outcome instanceof QueryError)) of.byPlan.set(outcome.query, counted);
    this.#waitingCharacters += characters;
    this.#waiting.push({ of, question: { body, parameterOids }, outcome, counted });
    this.#schedule();
  }

  /**
   * Returns the caller's rights under both policies; null if they cannot be compared. The question is then counted as
   * not compared.
   */
  #statementsOf(caller: Caller, now: number): CallerStatements | null {
    const known = this.#byCaller.get(caller);
    if (known !== undefined && now < known.until) return known.of;
    const { identity, access, manifest } = caller;
    const shadow = this.#snapshotFor(manifest);
    if (shadow === null) {
      this.#uncompared.model_changed++;
      return null;
    }
    const circumstances = { ...caller.circumstances, now };
    const of = this.#kept(access, caller, sideOf(identity, shadow, manifest, circumstances), circumstances);
    if (of === null) {
      this.#uncompared.too_many++;
      return null;
    }
    // A Postgres session keeps its caller object. Other surfaces create one per request, so an entry would not be
    // reused.
    if (circumstances.surface === 'wire')
      this.#byCaller.set(caller, { of, until: accessUntil(identity, shadow, circumstances) });
    return of;
  }

  #kept(
    access: EffectiveAccess,
    caller: Caller,
    shadow: CallerStatements['shadow'],
    circumstances: Circumstances,
  ): CallerStatements | null {
    const before = this.#byAccess.get(access);
    if (before !== undefined && accessOf(before.shadow) === accessOf(shadow)) return before;
    const { identity, manifest, snapshot } = caller;
    const served = { access: withPlaceholders(caller, circumstances), snapshot };
    const { chain } = identity;
    const key = keyOf(chain, served, shadow);
    let of = this.#byKey.get(key);
    if (of === undefined) {
      if (this.#byKey.size >= MOST_STATEMENTS) return null;
      of = { chain, served, shadow, manifest, byPlan: new WeakMap(), byShape: new Map() };
      this.#byKey.set(key, of);
    }
    this.#byAccess.set(access, of);
    return of;
  }

  #snapshotFor(manifest: Manifest): PolicySnapshot | null {
    const { manifest: compiledFor, snapshot } = this.#current;
    if (compiledFor === manifest || snapshot?.catalogVersion === manifest.catalog.version) return snapshot;
    void this.#compileFor(manifest);
    return null;
  }

  /** Compiles the policy for another manifest. Until that is done, questions are not compared. */
  async #compileFor(manifest: Manifest): Promise<void> {
    if (this.#isCompiling) return;
    this.#isCompiling = true;
    const { catalog, tenant } = manifest;
    try {
      const snapshot = await inTurns(compileSnapshotInSteps(this.#document, catalog, tenant));
      this.#current = { manifest, snapshot };
    } catch (error) {
      this.#current = { manifest, snapshot: null };
      const fields = { error: messageOf(error) };
      this.#parts().log.warn(
        'the shadow policy does not compile against the manifest that is served',
        fields,
      );
    } finally {
      this.#isCompiling = false;
    }
  }

  #schedule(): void {
    if (this.#isDue || this.#ended) return;
    this.#isDue = true;
    const ms = Math.max(HEAD_START_MS, this.#restUntil - performance.now());
    setTimeout(() => void this.#turn(), ms).unref();
  }

  async #turn(): Promise<void> {
    const began = performance.now();
    let compiled = false;
    while (!compiled && !this.#ended && performance.now() - began < TURN_MS) {
      const next = this.#waiting.shift();
      if (next === undefined) break;
      this.#waitingCharacters -= lengthOf(next.question.body);
      compiled = await this.#take(next);
    }
    const ended = performance.now();
    this.#restUntil = ended + REST * (ended - began);
    this.#isDue = false;
    if (this.#waiting.length > 0) this.#schedule();
  }

  /** Counts a question under its shape, and compares it if the shape is new. Returns true if something was compiled. */
  async #take(next: WaitingQuestion): Promise<boolean> {
    const { of, question, outcome, counted } = next;
    const key = shapeKey(question, outcome);
    const known = of.byShape.get(key);
    if (known !== undefined) {
      known.questions += counted.questions;
      known.last = Math.max(known.last, counted.last);
      if (!(outcome instanceof QueryError)) of.byPlan.set(outcome.query, known);
      return false;
    }
    if (this.#statements >= MOST_STATEMENTS) {
      this.#uncompared.too_many += counted.questions;
      if (!(outcome instanceof QueryError)) of.byPlan.delete(outcome.query);
      return false;
    }
    this.#statements++;
    of.byShape.set(key, counted);
    try {
      counted.result = await this.#compared(next);
      if (counted.result !== 'failed' && counted.result.kind !== 'same')
        counted.statement = redactStatement(textOf(question.body), of.manifest.catalog);
    } catch (error) {
      counted.result = 'failed';
      this.#parts().log.error('a question was not compared with the shadow policy', {
        error: stackOf(error),
      });
    }
    return true;
  }

  async #compared({ of, question, outcome }: WaitingQuestion): Promise<PlanComparison | 'failed'> {
    const { served, shadow, manifest } = of;
    const plans = async (side: PolicySide) => this.#planned(side, manifest, question);
    // The rollups that a plan may use change over time, so the compared plans use none.
    const usesRollups = !(outcome instanceof QueryError) && outcome.rollup !== null;
    const before = usesRollups ? await plans(served) : outcome;
    const after = shadow instanceof QueryError ? shadow : await plans(shadow);
    if (before === null || after === null) return 'failed';
    if (after instanceof QueryError) {
      if (before instanceof QueryError) return { kind: 'same' };
      return { kind: 'refused', code: after.code, objects: before.objects };
    }
    if (before instanceof QueryError) return { kind: 'allowed', code: before.code, objects: after.objects };
    if (shadow instanceof QueryError) return 'failed';
    const objects = comparePlans({ plan: before, side: served }, { plan: after, side: shadow }, manifest);
    return objects.length === 0 ? { kind: 'same' } : { kind: 'differs', objects };
  }

  /**
   * Returns the plan of a question under one policy, or the error with which that policy refuses the question; null if
   * the question fails for a reason other than the policy.
   */
  async #planned(
    { access }: PolicySide,
    manifest: Manifest,
    question: PlannedQuestion,
  ): Promise<GovernedPlan | QueryError | null> {
    const { log, marks, content } = this.#parts();
    const parts = { log, marks, content, parsing: this.#parsing, plans: this.#plans, rollups: NO_ROLLUPS };
    const planned: PlanningCaller = { access, manifest, identity: { subject: SHADOW } };
    try {
      const plan = await planOf(parts, planned, question, { mark: markOf });
      requireModelAccess(plan);
      return plan;
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      return isOfPolicy(error) ? error : null;
    }
  }
}

const SHADOW = 'the shadow policy';

const NO_ROLLUPS: Rollups = Object.freeze({
  usable: () => ({ builtAt: new Map<string, number>(), key: '' }),
});

/** True if the error is due to the policy; false if it depends on time, load or cost. */
function isOfPolicy({ http, entry }: QueryError): boolean {
  return http < 429 && entry !== 'costCap' && entry !== 'tooComplex';
}

function sideOf(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  { catalog }: Manifest,
  circumstances: Circumstances,
): CallerStatements['shadow'] {
  const { purpose } = circumstances;
  if (purpose !== null && purposeOf(identity, snapshot, purpose) === null)
    return queryError('purposeDenied', {});
  const read = placeholders(identity, snapshot);
  return { access: effectiveAccess(identity, snapshot, catalog, circumstances, read), snapshot };
}

function accessOf(side: CallerStatements['shadow']): EffectiveAccess | null {
  return side instanceof QueryError ? null : side.access;
}

/**
 * Returns placeholder values for attributes that the policy reads from entities; null if the caller's filters use none.
 * Plans depend only on the number of values, and the comparison on the attribute's definition, so nothing needs to be
 * read.
 */
function placeholders(identity: IdentityClaims, snapshot: PolicySnapshot): ReadAttributes | null {
  const attributes = attributesToReadFor(identity, snapshot);
  if (attributes.length === 0) return null;
  const subjects = subjectsOf(identity, snapshot).map(({ attributes: stated }) => {
    const values = new Map<string, readonly string[]>();
    for (const { name, needs } of attributes)
      if ([...needs].every((needed) => stated.has(needed) || values.has(needed))) values.set(name, SEVERAL);
    return values;
  });
  return { key: 'stand-ins', subjects };
}

const SEVERAL: readonly string[] = Object.freeze(['', ' ']);

/** Returns the served access with placeholders for the values of attributes that were read from entities. */
function withPlaceholders(
  { identity, access, snapshot, manifest }: Caller,
  circumstances: Circumstances,
): EffectiveAccess {
  if (access.readAttributes === null) return access;
  // The policy caches the last access of each identity object. Computing it for a copy leaves the served access cached.
  const copy: IdentityClaims = { ...identity };
  const read = placeholders(copy, snapshot);
  return effectiveAccess(copy, snapshot, manifest.catalog, circumstances, read);
}

/** Returns a key that is equal for callers with the same chain and the same rights under both policies. */
function keyOf(chain: readonly string[], served: PolicySide, shadow: CallerStatements['shadow']): string {
  const { signature, attributesKey: claimed } = served.access;
  const after = accessOf(shadow);
  return JSON.stringify([chain, signature, claimed, after?.signature, after?.attributesKey]);
}

/**
 * Returns a key that is equal for questions that differ only in literals. It is a hash, since there may be many long
 * texts.
 */
function shapeKey({ body, parameterOids }: PlannedQuestion, outcome: GovernedPlan | QueryError): string {
  const text = textOf(body);
  const shape = body.kind === 'metrics' ? text : (shapeOf(text)?.shape ?? text);
  const code = outcome instanceof QueryError ? outcome.code : null;
  return createHash('sha256')
    .update(JSON.stringify([body.kind, parameterOids, code, shape]))
    .digest('base64');
}

function textOf(body: PlannedQuestion['body']): string {
  return body.kind === 'metrics' ? JSON.stringify(body.request) : body.text;
}

function lengthOf(body: PlannedQuestion['body']): number {
  return body.kind === 'metrics' ? METRICS_CHARACTERS : body.text.length;
}

/** Length assumed for a metrics request, in characters. */
const METRICS_CHARACTERS = 1_024;

/**
 * Returns the mark that is kept while a long text is compiled. If this kills the process, the next start reports the
 * mark.
 */
function markOf(text: string): CompileMark {
  return {
    request_id: randomUUID(),
    surface: 'system',
    action: 'policy_shadow',
    subject: null,
    chain: [],
    statement_hmac: null,
    size: text.length,
  };
}
