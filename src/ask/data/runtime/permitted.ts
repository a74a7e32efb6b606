import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { emit, type GovernedPlan } from 'osl-compiler';
import type { PermittedCounts, RuntimeInput } from '../parts.js';
import { slotValues } from './slot-values.js';
import { step } from './step.js';

/** Cache lifetime: a store's epoch does not change with its entities. */
const TRUST_MS = 60_000;
const REMEMBERED = 2_000;

interface CachedSetSize {
  readonly epoch: string;
  readonly until: number;
  readonly many: boolean;
}

/**
 * Tells if a caller may see many passages of a store or few, by counting permitted passages up to a limit. An outdated
 * answer costs time or some recall, never a row.
 */
export class PermittedSets implements PermittedCounts {
  readonly #few: number;
  readonly #answers = new LRUCache<string, CachedSetSize>({ max: REMEMBERED });

  /** @param few largest number that is compared one by one */
  constructor(few: number) {
    this.#few = few;
  }

  async areMany(some: GovernedPlan, epoch: string, input: RuntimeInput): Promise<boolean> {
    const given = new Map([['limit', String(this.#few + 1)]]);
    const key = keyOf(some, given, input);
    const known = this.#answers.get(key);
    if (known !== undefined && known.epoch === epoch && known.until > Date.now()) return known.many;
    const { rows } = await step(some, given, input, 1);
    const many = Number(rows[0]?.get('count') ?? 0) > this.#few;
    this.#answers.set(key, { epoch, until: Date.now() + TRUST_MS, many });
    return many;
  }
}

/** Hash of the statement and all its values, including those of the policy. */
export function keyOf(plan: GovernedPlan, given: ReadonlyMap<string, string>, input: RuntimeInput): string {
  const { sql, slots } = emit(plan);
  const hash = createHash('sha256').update(`${plan.connector} ${sql}`);
  for (const { format, bytes } of slotValues(slots, given, input)) {
    hash.update(bytes === null ? 'null' : `${format} ${bytes.length} `).update(bytes ?? '');
  }
  return hash.digest('base64');
}
