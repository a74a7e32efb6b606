import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ALL_FEATURES, compile, type GovernedPlan, identifier, QueryError, queryError } from 'osl-compiler';
import {
  accessForReading,
  attributesToReadFor,
  effectiveAccess,
  type ReadAttributes,
  type SubjectPolicy,
  subjectsOf,
  type TableAttribute,
  withRead,
} from '../../../policy/index.js';
import { MemoryShare } from '../../engine/index.js';
import type { Caller, TableAttributeReader } from '../request/caller.js';
import type { RunningParts } from './parts.js';
import { StandbyUse } from './query-answer.js';
import { step } from './runtime/step.js';

/** Maximum number of values of an attribute of a subject, and their maximum size in bytes as read from the database. */
const MOST_VALUES = 10_000;
const MOST_BYTES = 1_048_576;
/** Maximum number of cached plans, of cached attribute readings, and of characters in these readings. */
const PLANS = 1_000;
const KEPT = 10_000;
const KEPT_CHARACTERS = 33_554_432;
/** Approximate memory overhead of a cached reading, and of each value in it, in characters. */
const OVERHEAD = 64;

/** Values of one attribute of one subject. Times are on the clock of `performance.now()`. */
interface KeptValues {
  readonly values: Promise<readonly string[]>;
  /** Time at which the read started; the values include everything committed before. */
  readonly began: number;
  /** Time at which the read ended; the values include nothing committed later. Null while the read is running. */
  ended: number | null;
  /** The subject whose limits apply to the read. While it is running, other subjects do not wait for it. */
  readonly for: string;
}

/** Values of one subject, by attribute. Times are on the clock of `performance.now()`. */
interface SubjectValues {
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** Time at which the last read ended. */
  readonly readBy: number;
  /** Time until which all values may be used. */
  readonly ends: number;
}

/**
 * Reads the attributes that a policy takes from entities, each with a separate governed plan, before the caller's
 * rights are evaluated. Values older than the policy allows are read again.
 */
export class TableAttributes implements TableAttributeReader {
  readonly #parts: () => RunningParts;
  readonly #plans = new LRUCache<string, GovernedPlan>({ max: PLANS });
  readonly #kept = new LRUCache<string, KeptValues>({ max: KEPT, maxSize: KEPT_CHARACTERS });

  /** @param parts returns the parts of the service; called only once the service is open */
  constructor(parts: () => RunningParts) {
    this.#parts = parts;
  }

  needs({ identity, seenAs = identity, snapshot }: Caller): boolean {
    return attributesToReadFor(seenAs, snapshot).length > 0;
  }

  /** @throws QueryError E0511 if a subject has too many values, and the errors of reading an entity */
  async complete(caller: Caller): Promise<Caller> {
    const { snapshot, manifest, circumstances } = caller;
    const identity = caller.seenAs ?? caller.identity;
    const attributes = attributesToReadFor(identity, snapshot);
    if (attributes.length === 0) return caller;
    const found = await Promise.all(
      subjectsOf(identity, snapshot).map((subject) => this.#ofSubject(attributes, subject, caller)),
    );
    const subjects = found.map(({ values }) => values);
    const read = Object.freeze({ key: keyOf(subjects), subjects });
    const ends = Math.min(...found.map((one) => one.ends));
    return Object.freeze({
      ...caller,
      access: effectiveAccess(identity, snapshot, manifest.catalog, circumstances, read),
      // If a value may not be reused, the rights that follow from it expire at once.
      until: Math.min(caller.until, Date.now() + ends - performance.now()),
      rightsAsOf: Math.max(...found.map((one) => one.readBy)),
    });
  }

  /** Reads one attribute after the other, since later ones may need earlier ones. */
  async #ofSubject(
    attributes: readonly TableAttribute[],
    subject: SubjectPolicy,
    caller: Caller,
  ): Promise<SubjectValues> {
    const values = new Map<string, readonly string[]>();
    let known = subject;
    let readBy = Number.NEGATIVE_INFINITY;
    let ends = Number.POSITIVE_INFINITY;
    for (const attribute of attributes) {
      // If the subject lacks an attribute that the filter names, it lacks this one as well.
      if (![...attribute.needs].every((name) => known.attributes.has(name))) continue;
      const found = this.#valuesOf(attribute, known, caller);
      values.set(attribute.name, await found.values);
      readBy = Math.max(readBy, found.ended ?? performance.now());
      ends = Math.min(ends, found.began + attribute.maxAgeMs);
      known = withRead(subject, values);
    }
    return { values, readBy, ends };
  }

  #valuesOf(attribute: TableAttribute, subject: SubjectPolicy, caller: Caller): KeptValues {
    const { name, needs, maxAgeMs } = attribute;
    const began = performance.now();
    const asker = caller.identity.subject;
    const read = (): KeptValues => {
      const values = this.#read(attribute, subject, caller);
      return { values, began, ended: null, for: asker };
    };
    if (maxAgeMs === 0) return read();
    const given = [...needs].sort().map((needed) => [needed, subject.attributes.get(needed)]);
    const key = `${caller.snapshot.version} ${caller.manifest.catalog.version} ${name} ${JSON.stringify(given)}`;
    const kept = this.#kept.get(key);
    const isShared = kept !== undefined && (kept.ended !== null || kept.for === asker);
    if (isShared && began - kept.began < maxAgeMs) return kept;
    const found = read();
    this.#kept.set(key, found, { size: OVERHEAD + key.length });
    const isLast = (): boolean => this.#kept.peek(key) === found;
    found.values.then(
      (values) => {
        found.ended = performance.now();
        if (isLast()) this.#kept.set(key, found, { size: key.length + sizeOf(values) });
      },
      () => {
        if (isLast()) this.#kept.delete(key);
      },
    );
    return found;
  }

  async #read(attribute: TableAttribute, subject: SubjectPolicy, caller: Caller): Promise<readonly string[]> {
    const parts = this.#parts();
    const access = accessForReading(attribute, subject, caller.snapshot);
    const { name } = attribute;
    const { catalog } = caller.manifest;
    const key = `${catalog.version} ${access.signature}`;
    let plan = this.#plans.get(key);
    if (plan === undefined) {
      const text = readingText(attribute);
      plan = compile(text, catalog, access, { features: ALL_FEATURES });
      this.#plans.set(key, plan);
    }
    const memory = new MemoryShare(parts.memory, caller.identity.subject);
    try {
      const reader = { ...caller, access: readingAccess(caller, access, subject) };
      const input = {
        parts,
        caller: reader,
        plan,
        parameters: [],
        signal: null,
        snapshots: null,
        whole: true,
        standby: new StandbyUse(null, false),
        memory,
      };
      const { rows } = await step(plan, NOTHING_GIVEN, input, MOST_VALUES + 1, MOST_BYTES);
      if (rows.length > MOST_VALUES)
        throw queryError('tooLarge', {
          what: `the number of values of attribute \`${name}\``,
          limit: MOST_VALUES,
        });
      return Object.freeze(rows.flatMap((row) => row.get('v') ?? []).sort());
    } catch (error) {
      throw withoutName(error);
    } finally {
      memory.release();
    }
  }
}

function readingText({ relation, column }: TableAttribute): string {
  const from = `from osl.entities.${identifier(relation.name)}`;
  if (column === null) return `select true as v ${from} limit 1`;
  const value = identifier(column);
  return `select distinct ${value} as v ${from} where ${value} is not null limit ${MOST_VALUES + 1}`;
}

const NOTHING_GIVEN: ReadonlyMap<string, string> = new Map();

/** Returns the caller's access with the relations of `access` and the attributes of a single subject. */
function readingAccess(
  caller: Caller,
  access: ReturnType<typeof accessForReading>,
  { attributes }: SubjectPolicy,
): Caller['access'] {
  return Object.freeze({
    ...caller.access,
    ...access,
    denied: new Map(),
    attributeValues: (index: number, name: string) => {
      const value = index === 0 ? attributes.get(name) : undefined;
      return value === undefined || value === 'any' ? [] : value;
    },
  });
}

function keyOf(subjects: ReadAttributes['subjects']): string {
  const values = subjects.map((read) => [...read]);
  return createHash('sha256').update(JSON.stringify(values)).digest('base64url');
}

function sizeOf(values: readonly string[]): number {
  return values.reduce((size, value) => size + OVERHEAD + value.length, OVERHEAD);
}

/** Removes the entity's name from an error, since the caller did not write it and may not know it. */
function withoutName(error: unknown): unknown {
  if (!(error instanceof QueryError)) return error;
  const { entry } = error;
  const isOfSource = entry === 'sourceDenied' || entry === 'sourceGone' || entry === 'sourceChanged';
  return isOfSource ? queryError(entry, { objects: 'an entity that the policy reads' }) : error;
}
