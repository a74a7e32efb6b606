import { createHmac } from 'node:crypto';
import { type EntityKey, type GovernedPlan, type KeyedPlan, queryError, withEntityKeys } from 'osl-compiler';
import type { Quota } from '../../../policy/index.js';
import { DataRowReader, type RowSink } from '../../engine/index.js';
import type { Caller } from '../request/caller.js';
import { quotasFor, renewalTime, requireTask } from '../request/limit.js';
import { SealedValue } from '../request/sealed.js';
import type { RunningParts, RuntimeRows } from './parts.js';
import { countsCost, withinCost } from './query-limits.js';
import { formatsOf, type ResultDelivery } from './question.js';
import type { TextRow } from './runtime/step.js';

/** True if a limit of the caller depends on the plan of each query, so that no query may skip planning. */
export function needsFullPath(caller: Caller): boolean {
  return countsCost(caller) || quotasFor(caller, 'entities').length > 0;
}

/**
 * Checks that a plan may run under the limits of its caller. Returns undefined if this needs no query to the database.
 *
 * @throws QueryError E0536, E0532, and the errors of `withinCost`
 */
export function withinLimits(
  parts: RunningParts,
  caller: Caller,
  plan: GovernedPlan,
): Promise<void> | undefined {
  entityCounter(parts, caller, plan);
  return withinCost(parts, caller, plan);
}

/**
 * Returns a counter of the entities shown in the rows of `plan`; null if no limit of the caller counts any of them.
 *
 * @throws QueryError E0536 if the rows do not identify the entities that they show, E0532 if a limit needs a task
 */
export function entityCounter(
  parts: Pick<RunningParts, 'maskKeys' | 'controls'>,
  caller: Caller,
  plan: GovernedPlan,
): EntityCounter | null {
  const quotas = quotasFor(caller, 'entities');
  if (quotas.length === 0) return null;
  const keyed = keyedPlan(caller, plan, quotas);
  if (keyed === null) return null;
  const shownEntities = new Set(keyed.keys.map(({ entity }) => entity));
  const relevant = quotas.filter(({ entities }) => [...shownEntities].some((entity) => entities.has(entity)));
  requireTask(relevant);
  return new EntityCounter(parts, strictest(relevant), keyed, plan.outputs.length);
}

const KEYED_PLANS = new WeakMap<GovernedPlan, Map<string, ReturnType<typeof withEntityKeys>>>();

/** Adds the keys of counted entities to the outputs of `plan`; null if it shows none. @throws QueryError E0536 */
function keyedPlan(
  { access, manifest }: Caller,
  plan: GovernedPlan,
  quotas: readonly Quota[],
): KeyedPlan | null {
  const entities = new Set(quotas.flatMap((quota) => [...quota.entities]));
  const names = JSON.stringify([...entities].sort());
  let byNames = KEYED_PLANS.get(plan);
  if (byNames === undefined) KEYED_PLANS.set(plan, (byNames = new Map()));
  let keyed = byNames.get(names);
  if (keyed === undefined) {
    keyed = withEntityKeys(plan, entities, manifest.catalog, access);
    byNames.set(names, keyed);
  }
  if (keyed === null || 'plan' in keyed) return keyed;
  const { entity, reason } = keyed;
  const budget = quotas.find((quota) => quota.entities.has(entity))?.label ?? '';
  throw queryError('uncountedEntities', { entity, reason, budget });
}

/** Returns the limits, keeping only the lowest of those that share a count. */
function strictest(quotas: readonly Quota[]): readonly Quota[] {
  const byKey = new Map<string, Quota>();
  for (const quota of quotas) {
    const other = byKey.get(quota.key);
    if (other === undefined || quota.limit < other.limit) byKey.set(quota.key, quota);
  }
  return [...byKey.values()];
}

/** Opens the sink of an answer, once the rows of its runtime relations are known. */
export type OpenSink = (runtime: readonly RuntimeRows[]) => RowSink;

interface PlannedRun {
  readonly plan: GovernedPlan;
  readonly delivery: Omit<ResultDelivery, 'sink'>;
  readonly open: OpenSink;
}

/** Returns `run` with its entities counted before rows are sent. @throws QueryError E0536, E0532 */
export function countedRun(parts: RunningParts, caller: Caller, run: PlannedRun): PlannedRun {
  const counter = entityCounter(parts, caller, run.plan);
  if (counter === null) return run;
  const { plan, delivery, open } = run;
  const resultFormats = counter.formats(formatsOf(delivery, plan));
  return {
    plan: counter.plan,
    delivery: { ...delivery, resultFormats },
    open: (runtime) => counter.sink(open(runtime)),
  };
}

/** HKDF domain for the keys of entity hashes. Key domains of a manifest cannot contain `#`. */
const DOMAIN = '#entities';
/** Size of a hash in bytes: the probability that two of 100,000 entities have the same hash is below 10^-28. */
const HASH_BYTES = 16;

/** An entity shown in a row: its name, and its key columns (each with its length) as UTF-8 bytes decoded as Latin-1. */
interface ShownEntity {
  readonly entity: string;
  readonly text: string;
}

/** Counts the entities in the rows of one answer. The last columns of these rows are the entities' keys. */
class EntityCounter {
  readonly plan: GovernedPlan;
  readonly #keys: readonly EntityKey[];
  /** Number of columns shown to the caller. */
  readonly #width: number;
  readonly #quotas: readonly Quota[];
  readonly #parts: Pick<RunningParts, 'maskKeys' | 'controls'>;
  /** Entities in earlier rows of this answer, which are already counted. */
  readonly #seen = new Set<string>();
  /** HMAC keys for `#hash`, by the key of the count and the entity name. */
  readonly #hashKeys = new Map<string, Buffer>();

  constructor(
    parts: Pick<RunningParts, 'maskKeys' | 'controls'>,
    quotas: readonly Quota[],
    { plan, keys }: KeyedPlan,
    width: number,
  ) {
    this.plan = plan;
    this.#keys = keys;
    this.#width = width;
    this.#quotas = quotas;
    this.#parts = parts;
  }

  /** Returns the column formats of `plan`: those of the shown columns, and text for the keys. */
  formats(shown: readonly (0 | 1)[]): readonly (0 | 1)[] {
    if (!shown.includes(1)) return [];
    const shownFormats = Array.from(
      { length: this.#width },
      (_, i) => shown[shown.length === 1 ? 0 : i] ?? 0,
    );
    return [
      ...shownFormats,
      ...Array.from({ length: this.plan.outputs.length - this.#width }, () => 0 as const),
    ];
  }

  /**
   * Returns a sink that removes the keys from rows and passes the rows to `target` once their entities are counted.
   */
  sink(target: RowSink): RowSink {
    return {
      write: (dataRows, rows) => {
        const { shown, fresh } = this.#read(dataRows);
        if (fresh.size === 0) return target.write(shown, rows);
        return this.#count(fresh).then(() => target.write(shown, rows));
      },
    };
  }

  /** Counts the entities of all `rows`. @throws QueryError E4290, E5038 */
  async countRows(rows: readonly TextRow[]): Promise<void> {
    const fresh = new Map<string, ShownEntity>();
    const names = this.plan.outputs.map(({ name }) => name);
    for (const row of rows) {
      const cells = names.map((name) => row.get(name) ?? null);
      this.#collect(
        fresh,
        cells.map((cell) => (cell === null ? null : Buffer.from(cell).toString('latin1'))),
      );
    }
    if (fresh.size > 0) await this.#count(fresh);
  }

  #read(dataRows: Uint8Array) {
    const fresh = new Map<string, ShownEntity>();
    const rows = new DataRowReader(dataRows);
    const shown = Buffer.allocUnsafe(dataRows.length);
    const cells = Array.from<string | null>({ length: this.plan.outputs.length });
    let length = 0;
    while (rows.next()) {
      let end = rows.rowStart + HEADER_BYTES;
      for (let i = 0; i < this.#width; i++) {
        rows.value();
        end = rows.end;
      }
      for (let i = this.#width; i < cells.length; i++)
        cells[i] = rows.value() ? rows.source.toString('latin1', rows.start, rows.end) : null;
      this.#collect(fresh, cells);
      const at = length;
      length += rows.source.copy(shown, at, rows.rowStart, end);
      shown.writeInt32BE(length - at - 1, at + 1);
      shown.writeUInt16BE(this.#width, at + 5);
    }
    return { shown: shown.subarray(0, length), fresh };
  }

  /** Adds the entities of a row to `fresh` unless an earlier row of the answer showed them. */
  #collect(fresh: Map<string, ShownEntity>, cells: readonly (string | null)[]): void {
    for (const { entity, columns } of this.#keys) {
      const values = columns.map((column) => cells[column] ?? null);
      if (values.every((value) => value === null)) continue;
      const text = values.map((value) => (value === null ? '-' : `${value.length}:${value}`)).join('');
      const id = `${entity} ${text}`;
      if (!this.#seen.has(id)) fresh.set(id, { entity, text });
    }
  }

  /** Adds new entities to the counts. @throws QueryError E4290 if a limit is exceeded, E5038 */
  async #count(fresh: ReadonlyMap<string, ShownEntity>): Promise<void> {
    const additions = this.#quotas.map(({ key, windowMs, limit, entities }) => {
      const counted = [...fresh.values()].filter(({ entity }) => entities.has(entity));
      return { key, windowMs, maxSize: limit, members: counted.map((shown) => this.#hash(key, shown)) };
    });
    const { limiter } = SealedValue.open(this.#parts.controls);
    const { refused, counts } = await limiter.entities.add(additions);
    if (refused !== null) {
      const waitMs = counts[refused]?.endsInMs ?? 0;
      throw queryError('entitiesSpent', {
        budget: this.#quotas[refused]?.label ?? '',
        renewsAt: renewalTime(waitMs),
        retryAfterSeconds: Math.max(1, Math.ceil(waitMs / 1_000)),
      });
    }
    for (const id of fresh.keys()) this.#seen.add(id);
  }

  /** Returns a hash that differs for each count, so that the store does not reveal which counts share an entity. */
  #hash(count: string, { entity, text }: ShownEntity): string {
    const name = `${count} ${entity}`;
    let key = this.#hashKeys.get(name);
    if (key === undefined) {
      const secret = Buffer.from(this.#parts.maskKeys.pad('inner', DOMAIN), 'hex');
      key = createHmac('sha256', secret)
        .update(JSON.stringify([count, entity]))
        .digest();
      this.#hashKeys.set(name, key);
    }
    const hash = createHmac('sha256', key).update(text, 'latin1').digest();
    return hash.toString('base64url', 0, HASH_BYTES);
  }
}

/** Length of the header of a DataRow message, in bytes. */
const HEADER_BYTES = 7;
