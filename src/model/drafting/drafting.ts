import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Worker } from 'node:worker_threads';
import { type ErrorName, InternalError, QueryError, type QueryErrorFields, queryError } from 'osl-compiler';
import type { PolicyDocument } from '../../../policy/index.js';
import type { ServiceLog } from '../../base/log.js';
import { FairSlots } from '../../base/threads/fair-slots.js';
import { answerOf, startThread, type ThreadFailure } from '../../base/threads/thread.js';
import type {
  DraftFinding,
  Judgement,
  ManifestDifference,
  Proposal,
  PublishStep,
  Suggestion,
} from '../authoring/index.js';
import type { AdoptionCandidate } from '../discovery/index.js';
import {
  type FragmentDocument,
  frozenMap,
  type Manifest,
  type ManifestDocument,
  type Overlay,
} from '../manifest/index.js';
import type { Model } from '../served-model.js';

/** The served model that drafts are compared with, and the documents from which it is compiled. */
export interface DraftBaseline extends Model {
  readonly base: ManifestDocument;
  readonly objects: FragmentDocument;
}

/**
 * Processes drafts, fairly among authors. Faults in a draft are part of the result. All errors thrown for the author
 * are QueryErrors: E0511 if a draft takes too long or too much memory, E4290 if one author has too many drafts, and
 * those of the task itself.
 */
export interface DraftCompiler {
  judge(proposal: Proposal, served: DraftBaseline, author: string): Promise<Judgement>;
  /** Throws the same errors as `applyStep`. */
  workOut(step: PublishStep, served: DraftBaseline, author: string): Promise<StepResult>;
  suggestRelation(candidate: AdoptionCandidate, served: DraftBaseline, author: string): Promise<Suggestion>;
  suggestTerm(term: string, served: DraftBaseline, author: string): Promise<Suggestion | null>;
  close(): Promise<void>;
}

interface DraftingOptions {
  readonly log: ServiceLog;
  readonly deadlineMs?: number;
}

/** Time limit per draft, with a margin for a busy machine. */
const DEADLINE_MS = 30_000;

export function createDrafting({ log, deadlineMs = DEADLINE_MS }: DraftingOptions): DraftCompiler {
  const thread = new DraftingThread(deadlineMs);
  const turns = new FairSlots();
  const asked = async <K extends DraftTask['kind']>(
    task: DraftTask & { readonly kind: K },
    served: DraftBaseline,
    author: string,
  ): Promise<DraftTaskResults[K]> => {
    if (turns.isFull(author)) throw queryError('rateLimited', { retryAfterSeconds: 1 });
    try {
      const reply = await turns.take(author, async () => {
        const answer = await thread.ask<DraftReply<DraftTaskResults[K]>>(task, keyOf(served), () =>
          baselineMessage(served),
        );
        // Must precede the next task: the thread keeps only the model of its last step for use as a baseline.
        thread.offer('result' in answer ? keyOfResult(answer.result, served) : null);
        return answer;
      });
      if ('result' in reply) return reply.result;
      const { entry, message, ...fields } = reply.error;
      throw new QueryError(entry as ErrorName, message, fields); // rethrows the error caught in the thread
    } catch (error) {
      if (!(error instanceof DraftingEnded)) throw error;
      log.error('a draft was not judged', { author, task: task.kind, reason: error.message });
      throw toAuthorError(error, deadlineMs);
    }
  };
  const drafting: DraftCompiler = {
    judge: (proposal, served, author) => asked({ kind: 'judge', proposal }, served, author),
    workOut: (step, served, author) => asked({ kind: 'step', step }, served, author),
    suggestRelation: (candidate, served, author) => asked({ kind: 'relation', candidate }, served, author),
    suggestTerm: (term, served, author) => asked({ kind: 'term', term }, served, author),
    close: () => thread.close(),
  };
  return Object.freeze(drafting);
}

function keyOf({ manifest, snapshot, base, objects }: DraftBaseline): string {
  const published = createHash('sha256').update(JSON.stringify(objects)).digest('base64');
  return `${manifest.version} ${snapshot?.version ?? ''} ${numberOf(base)} ${published}`;
}

/** Returns the key of the model that results from a step; null for other tasks and for failed steps. */
function keyOfResult(result: DraftTaskResults[DraftTask['kind']], served: DraftBaseline): string | null {
  if (result === null || !('objects' in result)) return null;
  const { manifest, objects } = result;
  return keyOf({ ...served, manifest, objects });
}

/** Numbers that stand for the documents of manifest files in cache keys. The documents are immutable. */
const NUMBERS = new WeakMap<ManifestDocument, number>();
let numbers = 0;

function numberOf(base: ManifestDocument): number {
  const known = NUMBERS.get(base) ?? ++numbers;
  NUMBERS.set(base, known);
  return known;
}

function baselineMessage({ manifest, snapshot, base, objects }: DraftBaseline): BaselineMessage {
  const policy = snapshot?.document ?? null;
  return { kind: 'baseline', version: manifest.version, base, objects, policy };
}

function toAuthorError({ why, message }: DraftingEnded, deadlineMs: number): Error {
  switch (why) {
    case 'late':
      return queryError('draftTooCostly', { what: `it takes more than ${deadlineMs} ms` });
    case 'memory':
      return queryError('draftTooCostly', { what: 'it needs more memory than a draft may' });
    case 'failed':
      return new InternalError(message);
  }
}

/** The drafting thread ended without an answer. */
class DraftingEnded extends Error {
  override readonly name = 'DraftingEnded';
  readonly why: ThreadFailure;

  constructor(why: ThreadFailure, detail: string) {
    super(`the thread that judges drafts ended: ${detail}`);
    this.why = why;
  }
}

/** Time limit for starting the thread and compiling the served model: the same as for the server's own start. */
const BASELINE_MS = 120_000;
const MEMORY_MB = 1_024;

/**
 * Compiles and checks drafts in a separate thread, because the only way to stop a compilation is to end its thread.
 * Exchanges run one at a time; messages are sent in portions, so that both sides can do other work in between.
 */
class DraftingThread {
  readonly #deadlineMs: number;
  #worker: Worker | null = null;
  #ready: Promise<void> = Promise.resolve();
  /** Key of the model that the thread compares drafts with; null if it has none. */
  #baseline: string | null = null;
  /** Key of the model that resulted from the thread's last step and that it can use as its baseline; null if none. */
  #offered: string | null = null;

  constructor(deadlineMs: number) {
    this.#deadlineMs = deadlineMs;
  }

  /**
   * Runs `task` against the baseline, which is sent first unless the thread already has the one with `key`. Rejects
   * with DraftingEnded.
   */
  async ask<T>(task: DraftTask, key: string, baseline: () => BaselineMessage): Promise<T> {
    try {
      const worker = this.#worker ?? this.#start();
      await this.#ready;
      if (this.#baseline !== key) {
        const next: ToBaseline = this.#offered === key ? { kind: 'adopt' } : baseline();
        this.#baseline = null;
        await exchange(worker, next, BASELINE_MS);
        this.#baseline = key;
      }
      this.#offered = null;
      return await exchange<T>(worker, task, this.#deadlineMs);
    } catch (error) {
      await this.close(); // the thread may have received half of a message
      throw error;
    }
  }

  /** Records the key of the model that resulted from the last task, which the thread can reuse; null if none. */
  offer(key: string | null): void {
    this.#offered = key;
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    this.#baseline = null;
    this.#offered = null;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = startThread(new URL('./drafting-worker.js', import.meta.url), {
      maxOldGenerationSizeMb: MEMORY_MB,
    });
    this.#worker = worker;
    this.#ready = draftingAnswer(worker, BASELINE_MS, (message) =>
      message.kind === 'ready' ? { value: undefined } : null,
    );
    this.#ready.catch(() => undefined); // reported by `ask`
    return worker;
  }
}

async function exchange<T>(worker: Worker, said: ToBaseline | DraftTask, deadlineMs: number): Promise<T> {
  const say = (message: ToDrafter): void => worker.postMessage(message);
  const portions = new Portions();
  const answer = draftingAnswer(worker, deadlineMs, (message): { value: T } | null => {
    if (message.kind === 'failed') throw new DraftingEnded('failed', message.reason);
    if (message.kind !== 'portion') return null;
    portions.add(message.portion);
    if (message.last) return { value: portions.whole<T>() };
    setImmediate(() => say({ kind: 'more' }));
    return null;
  });
  answer.catch(() => undefined); // reported below
  await inPortions(said, (portion, last) => say({ kind: 'portion', portion, last }));
  return answer;
}

function draftingAnswer<T>(
  worker: Worker,
  deadlineMs: number,
  read: (message: FromDrafter) => { readonly value: T } | null,
): Promise<T> {
  return answerOf(worker, deadlineMs, read, (why, detail) => new DraftingEnded(why, detail));
}

/** The served model's documents, which the thread compiles and keeps for later tasks. */
export interface BaselineMessage {
  readonly kind: 'baseline';
  readonly version: string;
  readonly base: ManifestDocument;
  readonly objects: FragmentDocument;
  readonly policy: PolicyDocument | null;
}

/** Sets the baseline, either to the given documents or to the result of the thread's last step (`adopt`). */
export type ToBaseline = BaselineMessage | { readonly kind: 'adopt' };

export type DraftTask =
  | { readonly kind: 'judge'; readonly proposal: Proposal }
  | { readonly kind: 'step'; readonly step: PublishStep }
  | { readonly kind: 'relation'; readonly candidate: AdoptionCandidate }
  | { readonly kind: 'term'; readonly term: string };

export interface DraftTaskResults {
  readonly judge: Judgement;
  readonly step: StepResult;
  readonly relation: Suggestion;
  readonly term: Suggestion | null;
}

/** Result of a step, with all data to store if it is published except the policy, which the receiver compiles. */
export type StepResult =
  | {
      readonly ok: true;
      readonly objects: FragmentDocument;
      readonly over: Overlay['over'];
      readonly manifest: Manifest;
      readonly diff: ManifestDifference;
      /** True if exactly this content is already published. */
      readonly published: boolean;
    }
  | { readonly ok: false; readonly findings: readonly DraftFinding[] };

/** A result, or an error of the catalogue for the author. */
export type DraftReply<T> =
  | { readonly result: T }
  | { readonly error: QueryErrorFields & { readonly entry: string } };

/** A portion of a `ToBaseline` or a `DraftTask`, or a request for the next portion of the answer. */
export type ToDrafter =
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'more' };

/** The ready signal, a portion of a `DraftReply`, or a failure. */
export type FromDrafter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'portion'; readonly portion: string; readonly last: boolean }
  | { readonly kind: 'failed'; readonly reason: string };

/**
 * Encodes plain data for transfer between threads, in portions that can each be decoded quickly: decoding a compiled
 * manifest of thousands of entities in one go would block the thread. Frozen objects stay frozen, and shared objects
 * stay shared.
 *
 * A portion is a JSON array of nodes, each preceded by the nodes it contains. A node is its kind followed by its
 * parts. A part is a value, or a node's number in brackets; empty brackets stand for `undefined`, and a string in
 * brackets for a number that JSON cannot represent.
 */
const KINDS = ['object', 'bare', 'array', 'map', 'set'] as const;

type NodeKind = (typeof KINDS)[number];
type EncodedPart = string | number | boolean | null | readonly [] | readonly [number | string];
type EncodedNode = readonly [kind: number, frozen: 0 | 1, ...parts: EncodedPart[]];

/** Approximate size of a portion, in UTF-16 code units. */
const PORTION = 65_536;

/** Encodes `value` in portions. @throws TypeError for cycles, and for values that are not plain data */
export function* portionsOf(value: object): Generator<string> {
  const numbers = new Map<object, number>();
  const begun = new Set<object>();
  const waiting: object[] = [value];
  let nodes: string[] = [];
  let units = 0;
  for (let at = waiting.at(-1); at !== undefined; at = waiting.at(-1)) {
    const inside = numbers.has(at) ? [] : objectsIn(at).filter((o) => !numbers.has(o));
    if (inside.length > 0) {
      if (begun.has(at)) throw new TypeError('a circle has no end');
      begun.add(at);
      for (const object of inside) waiting.push(object);
      continue;
    }
    waiting.pop();
    if (numbers.has(at)) continue;
    const node = JSON.stringify(nodeOf(at, numbers));
    numbers.set(at, numbers.size);
    nodes.push(node);
    units += node.length;
    if (units < PORTION) continue;
    yield `[${nodes.join(',')}]`;
    [nodes, units] = [[], 0];
  }
  yield `[${nodes.join(',')}]`;
}

function kindOf(value: object): NodeKind {
  if (Array.isArray(value)) return 'array';
  if (value instanceof Map) return 'map';
  if (value instanceof Set) return 'set';
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return 'bare';
  if (prototype === Object.prototype) return 'object';
  throw new TypeError('only plain data crosses threads');
}

function partsOf(value: object): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value].flatMap(([key, held]) => [nameOf(key), held]);
  if (value instanceof Set) return [...value];
  return Object.entries(value).flat();
}

function nameOf(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new TypeError('only plain data crosses threads');
}

function objectsIn(value: object): readonly object[] {
  return partsOf(value).filter((part) => typeof part === 'object' && part !== null);
}

function nodeOf(value: object, numbers: ReadonlyMap<object, number>): EncodedNode {
  const parts = partsOf(value).map((part): EncodedPart => {
    switch (typeof part) {
      case 'string':
      case 'boolean':
        return part;
      case 'undefined':
        return [];
      case 'number':
        return Number.isFinite(part) ? part : [String(part)];
      case 'object': {
        if (part === null) return null;
        const number = numbers.get(part);
        if (number !== undefined) return [number];
      }
    }
    throw new TypeError('only plain data crosses threads');
  });
  return [KINDS.indexOf(kindOf(value)), Object.isFrozen(value) ? 1 : 0, ...parts];
}

/** Decodes the portions that `portionsOf` produces. */
export class Portions {
  readonly #nodes: unknown[] = [];

  add(portion: string): void {
    const nodes = JSON.parse(portion) as readonly EncodedNode[]; // cast: written by `portionsOf`
    for (const node of nodes) this.#nodes.push(this.#built(node));
  }

  /** Returns the decoded message; call it after the last portion. The receiver knows the type of the message. */
  whole<T>(): T {
    return this.#nodes.at(-1) as T;
  }

  #built([kind, frozen, ...parts]: EncodedNode): unknown {
    const values = parts.map((part) => (Array.isArray(part) ? this.#partAt(part[0]) : part));
    const made = madeOf(KINDS[kind] ?? 'bare', values, frozen === 1);
    return frozen === 1 ? Object.freeze(made) : made;
  }

  #partAt(at: number | string | undefined): unknown {
    return typeof at === 'number' ? this.#nodes[at] : at === undefined ? undefined : Number(at);
  }
}

function madeOf(kind: NodeKind, values: readonly unknown[], frozen: boolean): object {
  switch (kind) {
    case 'array':
      return [...values];
    case 'set':
      return new Set(values);
    case 'map':
      return frozen ? frozenMap(pairs(values)) : new Map(pairs(values));
    case 'object':
      // `__proto__` is an ordinary name here.
      return Object.fromEntries(pairs(values));
    case 'bare':
      return Object.assign(Object.create(null), Object.fromEntries(pairs(values)));
  }
}

function pairs(values: readonly unknown[]): readonly (readonly [string, unknown])[] {
  return Array.from({ length: values.length / 2 }, (_, i) => [`${values[2 * i]}`, values[2 * i + 1]]);
}

/** Sends `value` in portions, yielding to other work in between. */
async function inPortions(value: object, say: (portion: string, last: boolean) => void): Promise<void> {
  let before: string | null = null;
  for (const portion of portionsOf(value)) {
    if (before !== null) {
      say(before, false);
      await nextTurn();
    }
    before = portion;
  }
  say(before ?? '[]', true);
}
