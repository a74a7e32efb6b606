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
  withReadAttributes,
} from '../../../policy/index.js';
import { MemoryShare } from '../../engine/index.js';
import type { Caller, TableAttributeReader } from '../request/caller.js';
import type { RunningParts } from './parts.js';
import { StandbyUse } from './query-answer.js';
import { step } from './runtime/step.js';

/** Maximum number of values of an attribute of a subject, and their maximum size in bytes as read from the database. */
const MAX_VALUES = 10_000;
const MAX_BYTES = 1_048_576;
/** Maximum number of cached plans, of cached attribute readings, and of characters in these readings. */
const MAX_PLANS = 1_000;
const MAX_READINGS = 10_000;
const MAX_CHARACTERS = 33_554_432;
/** Approximate memory overhead of a cached reading, and of each value in it, in characters. */
const OVERHEAD = 64;

/** Values of one attribute of one subject. Times are on the clock of `performance.now()`. */
interface AttributeReading {
  readonly values: Promise<readonly string[]>;
  /** Time at which the read started; the values include everything committed before. */
  readonly startedAt: number;
  /** Time at which the read ended; the values include nothing committed later. Null while the read is running. */
  endedAt: number | null;
  /** The subject whose limits apply to the read. While it is running, other subjects do not wait for it. */
  readonly reader: string;
}

/** Values of one subject, by attribute. Times are on the clock of `performance.now()`. */
interface SubjectValues {
  readonly values: ReadonlyMap<string, readonly string[]>;
  /** Time at which the last read ended. */
  readonly readAt: number;
  /** Time until which all values may be used. */
  readonly validUntil: number;
}

/**
 * Reads the attributes that a policy takes from entities, each with a separate governed plan, before the caller's
 * rights are evaluated. Values older than the policy allows are read again.
 */
export class TableAttributes implements TableAttributeReader {
  readonly #parts: () => RunningParts;
  readonly #plans = new LRUCache<string, GovernedPlan>({ max: MAX_PLANS });
  readonly #readings = new LRUCache<string, AttributeReading>({ max: MAX_READINGS, maxSize: MAX_CHARACTERS });

  /** @param parts returns the parts of the service; called only once the service is open */
  constructor(parts: () => RunningParts) {
    this.#parts = parts;
  }

  needs({ identity, evaluatedAs = identity, snapshot }: Caller): boolean {
    return attributesToReadFor(evaluatedAs, snapshot).length > 0;
  }

  /** @throws QueryError E0511 if a subject has too many values, and the errors of reading an entity */
  async complete(caller: Caller): Promise<Caller> {
    const { snapshot, manifest, circumstances } = caller;
    const identity = caller.evaluatedAs ?? caller.identity;
    const attributes = attributesToReadFor(identity, snapshot);
    if (attributes.length === 0) return caller;
    const results = await Promise.all(
      subjectsOf(identity, snapshot).map((subject) => this.#readAttributesOf(attributes, subject, caller)),
    );
    const subjects = results.map(({ values }) => values);
    const readAttributes = Object.freeze({ key: keyOf(subjects), subjects });
    const validUntil = Math.min(...results.map((one) => one.validUntil));
    return Object.freeze({
      ...caller,
      access: effectiveAccess(identity, snapshot, manifest.catalog, circumstances, readAttributes),
      // If a value may not be reused, the rights derived from it expire immediately.
      until: Math.min(caller.until, Date.now() + validUntil - performance.now()),
      rightsAsOf: Math.max(...results.map((one) => one.readAt)),
    });
  }

  /** Reads one attribute after the other, since later ones may need earlier ones. */
  async #readAttributesOf(
    attributes: readonly TableAttribute[],
    subject: SubjectPolicy,
    caller: Caller,
  ): Promise<SubjectValues> {
    const values = new Map<string, readonly string[]>();
    let enriched = subject;
    let readAt = Number.NEGATIVE_INFINITY;
    let validUntil = Number.POSITIVE_INFINITY;
    for (const attribute of attributes) {
      // If the subject lacks an attribute that the filter names, it lacks this one as well.
      if (![...attribute.needs].every((name) => enriched.attributes.has(name))) continue;
      const reading = this.#valuesOf(attribute, enriched, caller);
      values.set(attribute.name, await reading.values);
      readAt = Math.max(readAt, reading.endedAt ?? performance.now());
      validUntil = Math.min(validUntil, reading.startedAt + attribute.maxAgeMs);
      enriched = withReadAttributes(subject, values);
    }
    return { values, readAt, validUntil };
  }

  #valuesOf(attribute: TableAttribute, subject: SubjectPolicy, caller: Caller): AttributeReading {
    const { name, needs, maxAgeMs } = attribute;
    const startedAt = performance.now();
    const reader = caller.identity.subject;
    const startReading = (): AttributeReading => {
      const values = this.#read(attribute, subject, caller);
      return { values, startedAt, endedAt: null, reader };
    };
    if (maxAgeMs === 0) return startReading();
    const inputs = [...needs].sort().map((needed) => [needed, subject.attributes.get(needed)]);
    const key = `${caller.snapshot.version} ${caller.manifest.catalog.version} ${name} ${JSON.stringify(inputs)}`;
    const cached = this.#readings.get(key);
    const isShared = cached !== undefined && (cached.endedAt !== null || cached.reader === reader);
    if (isShared && startedAt - cached.startedAt < maxAgeMs) return cached;
    const reading = startReading();
    this.#readings.set(key, reading, { size: OVERHEAD + key.length });
    const isCurrent = (): boolean => this.#readings.peek(key) === reading;
    reading.values.then(
      (values) => {
        reading.endedAt = performance.now();
        if (isCurrent()) this.#readings.set(key, reading, { size: key.length + sizeOf(values) });
      },
      () => {
        if (isCurrent()) this.#readings.delete(key);
      },
    );
    return reading;
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
      const { rows } = await step(plan, NO_ARGS, input, MAX_VALUES + 1, MAX_BYTES);
      if (rows.length > MAX_VALUES)
        throw queryError('tooLarge', {
          what: `the number of values of attribute \`${name}\``,
          limit: MAX_VALUES,
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
  return `select distinct ${value} as v ${from} where ${value} is not null limit ${MAX_VALUES + 1}`;
}

const NO_ARGS: ReadonlyMap<string, string> = new Map();

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
