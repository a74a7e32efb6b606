import { createHash } from 'node:crypto';
import type { Span } from '../chunk.js';
import type { Detector } from './detectors/detectors.js';
import { type DictionaryMatch, MASK, ValueMatcher } from './matcher.js';

/** Number of replacements, by sensitivity label or detector. */
export type RedactionCounts = Map<string, number>;

export interface RedactedText {
  readonly text: string;
  readonly changed: boolean;
}

/** Detectors, each with the name under which its matches are counted. */
export type NamedDetectors = readonly (readonly [name: string, detect: Detector])[];

/** Redaction rules of a facet version, without the dictionary's values. */
export interface RedactionRules {
  readonly redact: readonly string[];
  readonly detectors: NamedDetectors;
  /** Declared values that are ordinary words and are not redacted. */
  readonly exceptions: readonly string[];
}

/** Applies a facet version's redaction rules with a dictionary. */
export class Redactor {
  readonly labels: ReadonlySet<string>;
  readonly matcher: ValueMatcher;
  /** 32 hex digits over the dictionary; part of every document's content hash. */
  readonly dictionaryHash: string;
  readonly #detectors: NamedDetectors;

  constructor({ redact, detectors }: RedactionRules, matcher: ValueMatcher, dictionaryHash: string) {
    this.labels = new Set(redact);
    this.matcher = matcher;
    this.dictionaryHash = dictionaryHash;
    this.#detectors = detectors;
  }

  /** True if this redactor never replaces anything. */
  get isRaw(): boolean {
    return this.#detectors.length === 0 && this.matcher.size === 0 && this.labels.size === 0;
  }

  /**
   * Replaces every declared value and every match of a detector.
   *
   * INVARIANT: no declared value remains. A replacement creates new word boundaries, so the result is searched
   * repeatedly until nothing is found.
   */
  redact(text: string, counts: RedactionCounts): RedactedText {
    let current = text;
    for (;;) {
      const found = this.#findAll(current);
      if (found.length === 0) return { text: current, changed: current !== text };
      const next = replaceAll(current, found);
      if (next === current) return { text: current, changed: current !== text };
      for (const { label } of found) counts.set(label, (counts.get(label) ?? 0) + 1);
      current = next;
    }
  }

  /**
   * True if cutting inside a word at `at` produces no declared value at either side of the cut. Offsets are in UTF-16
   * code units.
   *
   * @param start start of the piece before the cut, possibly inside the same word
   */
  mayCut(text: string, at: number, start: number): boolean {
    if (this.matcher.size === 0) return true;
    const reach = this.matcher.longest * 4 + 64;
    const before = text.slice(Math.max(start, at - reach), at);
    const after = text.slice(at, at + reach);
    return (
      !this.matcher.find(before).some((f) => isInvisible(before.slice(f.end))) &&
      !this.matcher.find(after).some((f) => isInvisible(after.slice(0, f.start)))
    );
  }

  #findAll(text: string): readonly DictionaryMatch[] {
    const spans = [...this.matcher.find(text)];
    for (const [label, detect] of this.#detectors) {
      for (const span of detect(text)) spans.push({ ...span, label });
    }
    return merged(spans);
  }
}

/** True if `text` is invisible to readers. Marks and format characters do not separate letters. */
function isInvisible(text: string): boolean {
  return /^[\p{M}\p{Cf}]*$/u.test(text);
}

/** Merges overlapping spans; the first one's label is kept. */
function merged(spans: readonly DictionaryMatch[]): readonly DictionaryMatch[] {
  const out: DictionaryMatch[] = [];
  for (const span of [...spans].sort((a, b) => a.start - b.start || b.end - a.end)) {
    const last = out.at(-1);
    if (last !== undefined && span.start < last.end) {
      out[out.length - 1] = { ...last, end: Math.max(last.end, span.end) };
    } else {
      out.push(span);
    }
  }
  return out;
}

function replaceAll(text: string, spans: readonly Span[]): string {
  let out = '';
  let at = 0;
  for (const { start, end } of spans) {
    out += text.slice(at, start) + MASK;
    at = end;
  }
  return out + text.slice(at);
}

/** Creates a redactor. The values are sorted, so that their order does not affect the dictionary's hash. */
export function redactorOf(
  rules: RedactionRules,
  values: readonly { readonly value: string; readonly label: string }[],
  minLength: number,
): Redactor {
  const hash = createHash('sha256').update(`${JSON.stringify(rules.exceptions)}\n`);
  const sorted = [...values].sort((a, b) => order(a.label, b.label) || order(a.value, b.value));
  for (const { label, value } of sorted) hash.update(`${JSON.stringify([label, value])}\n`);
  return new Redactor(
    rules,
    new ValueMatcher(sorted, minLength, rules.exceptions),
    hash.digest('hex').slice(0, 32),
  );
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
