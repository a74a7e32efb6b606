import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { ALL_FEATURES, compile, type GovernedPlan, identifier, queryError } from 'osl-compiler';
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
import { step } from './runtime/step.js';
import { StandbyUse } from './standby-use.js';

/** Most values of one attribute of one subject. */
const MOST_VALUES = 10_000;
/** Most plans, and most subjects' values, that are kept. */
const PLANS = 1_000;
const KEPT = 10_000;

/** Values of one attribute of one subject, as of the time at which reading them began. */
interface KeptValues {
  readonly values: Promise<readonly string[]>;
  /** On the clock of `performance.now()`. */
  readonly began: number;
}

/**
 * Reads the attributes that a policy takes from entities, each by a governed plan of its own, before the caller's
 * rights are evaluated. Values older than the policy allows are read again.
 */
export class TableAttributes implements TableAttributeReader {
  readonly #parts: () => RunningParts;
  readonly #plans = new LRUCache<string, GovernedPlan>({ max: PLANS });
  readonly #kept = new LRUCache<string, KeptValues>({ max: KEPT });

  /** @param parts of the service, once it is open */
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
    const began = performance.now();
    const subjects = await Promise.all(
      subjectsOf(identity, snapshot).map((subject) => this.#ofSubject(attributes, subject, caller)),
    );
    const read = Object.freeze({ key: keyOf(subjects), subjects });
    const maxAgeMs = Math.min(...attributes.map((attribute) => attribute.maxAgeMs));
    return Object.freeze({
      ...caller,
      access: effectiveAccess(identity, snapshot, manifest.catalog, circumstances, read),
      // Rights that follow from values that may not be used again end at once.
      until: Math.min(caller.until, Date.now() - (performance.now() - began) + maxAgeMs),
    });
  }

  /** Reads one attribute after the other, since later ones may need earlier ones. */
  async #ofSubject(
    attributes: readonly TableAttribute[],
    subject: SubjectPolicy,
    caller: Caller,
  ): Promise<ReadonlyMap<string, readonly string[]>> {
    const values = new Map<string, readonly string[]>();
    let known = subject;
    for (const attribute of attributes) {
      // If the subject lacks an attribute that the filter names, it lacks this one as well.
      if (![...attribute.needs].every((name) => known.attributes.has(name))) continue;
      values.set(attribute.name, await this.#valuesOf(attribute, known, caller));
      known = withRead(subject, values);
    }
    return values;
  }

  #valuesOf(attribute: TableAttribute, subject: SubjectPolicy, caller: Caller): Promise<readonly string[]> {
    const { name, needs, maxAgeMs } = attribute;
    if (maxAgeMs === 0) return this.#read(attribute, subject, caller);
    const given = [...needs].sort().map((needed) => [needed, subject.attributes.get(needed)]);
    const key = `${caller.snapshot.version} ${caller.manifest.catalog.version} ${name} ${JSON.stringify(given)}`;
    const kept = this.#kept.get(key);
    const now = performance.now();
    if (kept !== undefined && now - kept.began < maxAgeMs) return kept.values;
    const values = this.#read(attribute, subject, caller);
    this.#kept.set(key, { values, began: now });
    values.catch(() => {
      if (this.#kept.peek(key)?.values === values) this.#kept.delete(key);
    });
    return values;
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
      const { rows } = await step(plan, NOTHING_GIVEN, input, MOST_VALUES + 1);
      if (rows.length > MOST_VALUES)
        throw queryError('tooLarge', {
          what: `the number of values of attribute \`${name}\``,
          limit: MOST_VALUES,
        });
      return Object.freeze(rows.flatMap((row) => row.get('v') ?? []).sort());
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

/** The caller's access with the relations of `access`, and the attributes of one subject alone. */
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
