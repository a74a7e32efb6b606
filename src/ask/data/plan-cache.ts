import { LRUCache } from 'lru-cache';
import {
  type CompiledStatement,
  emit,
  type GovernedPlan,
  type PlanTemplate,
  type ShapedText,
  shapeOf,
} from 'osl-compiler';

interface PlanCacheStats {
  readonly hits: number;
  /** Number of hits by shape: queries that differ from an earlier one only in literals. */
  readonly shapeHits: number;
  readonly misses: number;
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Caches governed plans by rights and text; texts of the same shape share a plan template. `rights` includes the
 * versions of manifest and policy, so entries never become stale; unused ones are evicted.
 */
export interface PlanCache {
  /** Returns the cached plan; if there is none, the result of `shapeOf`, to be passed to `add`. */
  find(rights: string, text: string): GovernedPlan | { readonly shaped: ShapedText | null };
  /** @param shaped result of `find` */
  add(rights: string, text: string, shaped: ShapedText | null, compiled: CompiledStatement): void;
  /** Returns the cached plan template that fits `text`; null if there is none. Not counted as a hit or miss. */
  templateOf(rights: string, text: string): PlanTemplate | null;
  stats(): PlanCacheStats;
}

/** The plan of one text, or the plan templates of one shape, which differ in literals that determine the plan. */
type CachedPlan =
  | { readonly kind: 'text'; readonly plan: GovernedPlan; bytes: number }
  | { readonly kind: 'shape'; readonly templates: PlanTemplate[]; bytes: number };

/** Approximate heap bytes of a plan per character of its SQL; a test compares it with V8's figures. */
const BYTES_PER_CHARACTER = 36;
const PLAN_BYTES = 1_024;
/** Maximum number of plans per shape; beyond it, the oldest is evicted. */
const MAX_TEMPLATES = 16;

/** LRU cache of at most `maxBytes`. */
export function createPlanCache(maxBytes: number): PlanCache {
  const entries = new LRUCache<string, CachedPlan>({
    maxSize: Math.max(1, maxBytes), // 1 caches nothing, since every plan is larger
    sizeCalculation: ({ bytes }) => bytes,
  });
  const counts = { hits: 0, shapeHits: 0, misses: 0 };

  const add = (
    rights: string,
    text: string,
    shaped: ShapedText | null,
    compiled: CompiledStatement,
  ): void => {
    const { plan, template } = compiled;
    if (shaped === null || template === null || shaped.literals.length === 0) {
      const key = textKey(rights, text);
      entries.set(key, { kind: 'text', plan, bytes: entryBytes(key, [plan]) });
      return;
    }
    const key = shapeKey(rights, shaped);
    const existing = entries.peek(key);
    const others = existing?.kind === 'shape' ? existing.templates.slice(1 - MAX_TEMPLATES) : [];
    const templates = [...others, template];
    entries.set(key, {
      kind: 'shape',
      templates,
      bytes: entryBytes(
        key,
        templates.map((t) => t.plan),
      ),
    });
  };
  const find: PlanCache['find'] = (rights, text) => {
    const exact = entries.get(textKey(rights, text));
    if (exact?.kind === 'text') {
      counts.hits++;
      return exact.plan;
    }
    const shaped = shapeOf(text);
    const entry = shaped === null ? undefined : entries.get(shapeKey(rights, shaped));
    if (shaped !== null && entry?.kind === 'shape') {
      const plan = fillTemplate(entry.templates, shaped);
      if (plan !== null) {
        counts.shapeHits++;
        return plan;
      }
    }
    counts.misses++;
    return { shaped };
  };
  return {
    find,
    add,
    templateOf(rights, text) {
      const shaped = shapeOf(text);
      const entry = shaped === null ? undefined : entries.peek(shapeKey(rights, shaped));
      if (shaped === null || entry?.kind !== 'shape') return null;
      return entry.templates.findLast((template) => template.fill(shaped.literals) !== null) ?? null;
    },
    stats: () => ({ ...counts, entries: entries.size, bytes: entries.calculatedSize }),
  };
}

function fillTemplate(templates: readonly PlanTemplate[], { literals }: ShapedText): GovernedPlan | null {
  for (let i = templates.length - 1; i >= 0; i--) {
    const plan = templates[i]?.fill(literals) ?? null;
    if (plan !== null) return plan;
  }
  return null;
}

// Prefixes distinguish the keys of shapes and texts, which may consist of the same characters.
function textKey(rights: string, text: string): string {
  return `t ${rights} ${text}`;
}

function shapeKey(rights: string, { shape }: ShapedText): string {
  return `s ${rights} ${shape}`;
}

function entryBytes(key: string, plans: readonly GovernedPlan[]): number {
  return plans.reduce(
    (sum, p) => sum + BYTES_PER_CHARACTER * emit(p).sql.length + literalBytes(p) + PLAN_BYTES,
    2 * key.length,
  );
}

/** Returns the size of a plan's literal values in bytes. Long IN lists can make it large. */
function literalBytes({ slots }: GovernedPlan): number {
  let bytes = 0;
  for (const slot of slots) {
    if (slot.kind !== 'literal') continue;
    if (typeof slot.value === 'string') bytes += 2 * slot.value.length;
    else for (const item of slot.value) bytes += VALUE_BYTES + 2 * (item?.length ?? 0);
  }
  return bytes;
}

const VALUE_BYTES = 24;
