/** A passage of an answer: its text, split at highlights, and its source. */
export interface Passage {
  readonly stretches: readonly Stretch[];
  readonly cite: Cite | null;
  readonly score: number | null;
  readonly redacted: readonly string[];
}

interface Stretch {
  readonly text: string;
  readonly isHighlight: boolean;
}

interface Cite {
  readonly document: string;
  readonly facet: string;
  readonly version: string;
  /** Offsets in the document, in code points. */
  readonly start: number;
  readonly end: number;
}

/** Reads the passage of a row from the columns that RETRIEVE returns; returns null if the row has no text. */
export function passageOf(row: Readonly<Record<string, unknown>>): Passage | null {
  const { text, cite, score, highlights, redacted_fields: redacted } = row;
  if (typeof text !== 'string') return null;
  return {
    stretches: stretchesOf(text, spansOf(highlights)),
    cite: citeOf(cite),
    score: typeof score === 'number' ? score : null,
    redacted: Array.isArray(redacted) ? redacted.filter((field) => typeof field === 'string') : [],
  };
}

function spansOf(highlights: unknown): readonly (readonly [number, number])[] {
  if (!Array.isArray(highlights)) return [];
  return highlights.flatMap((span: unknown) => {
    const [from, to] = Array.isArray(span) ? span : [];
    return typeof from === 'number' && typeof to === 'number' && from < to ? [[from, to] as const] : [];
  });
}

/** Splits `text` at spans, which must be ascending, disjoint and given in code points. */
export function stretchesOf(text: string, spans: readonly (readonly [number, number])[]): readonly Stretch[] {
  const points = [...text];
  const out: Stretch[] = [];
  let at = 0;
  const add = (to: number, isHighlight: boolean): void => {
    const part = points.slice(at, to).join('');
    if (part !== '') out.push({ text: part, isHighlight });
    at = Math.max(at, to);
  };
  for (const [from, to] of spans) {
    if (from < at) continue;
    add(from, false);
    add(to, true);
  }
  add(points.length, false);
  return out;
}

function citeOf(cite: unknown): Cite | null {
  if (typeof cite !== 'object' || cite === null) return null;
  // JSON from the gateway; each member is checked below.
  const { doc_id: document, facet, version, start, end } = cite as Readonly<Record<string, unknown>>;
  if (typeof document !== 'string' || typeof start !== 'number' || typeof end !== 'number') return null;
  return {
    document,
    facet: typeof facet === 'string' ? facet : '',
    version: typeof version === 'string' ? version : '',
    start,
    end,
  };
}
